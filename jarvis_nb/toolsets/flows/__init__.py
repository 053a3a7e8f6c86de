"""What a flow is made of: references, steps, their checks, the scheduler, the trace, the picture."""
