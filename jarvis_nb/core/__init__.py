"""Types, events, errors, registries and portable data: the room that knows nothing of the others."""
