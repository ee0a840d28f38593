"""The pages that show what was measured; one module per page."""
