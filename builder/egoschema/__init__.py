"""Making questions in the manner of EgoSchema, and measuring what they ask for."""
