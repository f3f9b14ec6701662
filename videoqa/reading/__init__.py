"""What a judge's reply says its score is: thinking is taken away, the rest made plain lines, claims found in them."""
