//! The examples work as their heads describe.
//!
//! `cargo test` builds them before it runs this test; `cargo test --test examples` does not.

mod echo;
mod fan_out;
mod file;
#[cfg(feature = "tokio")]
mod kv;
mod program;
