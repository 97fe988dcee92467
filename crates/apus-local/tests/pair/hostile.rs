//! What can a peer do that was not made by us?
