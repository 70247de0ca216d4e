"""The board: entries scored anew, ranked with tie groups, and shown on a page."""
