//! Does a pair keep what it promises? Both sides in one process, each with its own mapping.

mod hostile;
mod local;
mod peers;
mod rpc;
mod sleep;
