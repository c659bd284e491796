"""Everything that listens. Translates between the outside's protocols and our calls; decides nothing."""
