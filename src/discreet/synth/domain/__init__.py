"""The public declaration of a table or of pictures, and the rule that turns rows into whole numbers."""
