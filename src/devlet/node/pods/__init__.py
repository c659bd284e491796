"""The pods of this node: one worker for each, from admission to release."""
