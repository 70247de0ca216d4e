"""What every room uses: errors, optional packages, paths, parsing of lists and dates."""
