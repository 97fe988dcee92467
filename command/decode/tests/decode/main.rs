//! Tests of the decoder, and its comparison with the Wireshark plug-in.

mod builders;
mod damage;
mod dissector;
mod example_capture;
mod formats;
mod hostile;
mod invariants;
mod kernel_captures;
mod key_log;
mod notes;
#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod sealed;
mod traffic;
