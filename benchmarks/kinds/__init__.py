"""What each kind of benchmark measures, and its options."""
