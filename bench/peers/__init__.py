"""Other systems' searches, to stand beside ours."""
