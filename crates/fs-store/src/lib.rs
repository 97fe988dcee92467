//! Stores of the file service: what a server keeps files in.

#![forbid(unsafe_code)]

pub mod memory;
