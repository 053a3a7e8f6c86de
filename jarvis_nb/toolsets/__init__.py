"""Composition and narrowing: toolsets, policy, flows, sources, skills."""
