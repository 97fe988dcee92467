//! What does a record cost?
fn main() {}
