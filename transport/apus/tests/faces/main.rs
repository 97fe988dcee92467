//! The two faces of an endpoint are the same: blocking, and async with `.await`.
//!
//! `script` runs one program through both, `signatures` compares the lists of public methods.

#![cfg(feature = "tokio")]

mod script;
mod signatures;
