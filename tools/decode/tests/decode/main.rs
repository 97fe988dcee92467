//! Captures in, words out; and the Wireshark plug-in held against it.

mod damage;
mod dissector;
mod formats;
mod fuzzed;
mod hostile;
mod making;
mod recorded;
mod remarks;
mod story;
mod traffic;
