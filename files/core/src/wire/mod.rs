//! Messages between a client and a server of `apus fs`, as bytes.
//!
//! A client calls the server with a [`Request`] and receives a [`Response`]; the server calls a
//! client with a [`Callback`] and receives a [`CallbackResponse`]. Each message is a header in the
//! format of [postcard](https://postcard.jamesmunns.com/wire-format), followed by a payload: bytes
//! of files, which are not copied ([`frame`]).
//!
//! The module does no IO. Decoding arbitrary bytes never panics, and its results are within
//! [`limits`]: names are valid, lists are short, ranges lie in their payload.
//!
//! # Invariants
//!
//! - **FSWIRE-1** Decoding never panics, and allocates no more than a small multiple of the
//!   message's length.
//! - **FSWIRE-2** A message that is encoded and decoded is the same message.
//! - **FSWIRE-3** A decoded [`Name`] is 1 to 255 bytes, without `/` and NUL, and neither `.` nor
//!   `..`.
//! - **FSWIRE-4** Every payload range in a decoded message lies in the payload.

mod attributes;
mod callback;
mod check;
mod errno;
pub mod frame;
mod handle;
mod kind;
mod lease;
pub mod limits;
mod list;
mod lock;
mod name;
mod record;
mod request;
mod response;

pub use attributes::{Attributes, NodeKind, Time, Version};
pub use callback::{Callback, CallbackResponse, RecalledNode};
pub use check::{Check, Lie};
pub use errno::Errno;
pub use frame::{Decoded, Message, WireError};
pub use handle::{Handle, Ino};
pub use kind::RequestKind;
pub use lease::LeaseKind;
pub use lock::{LockKind, LockOwner, LockRange};
pub use name::{Name, NameError};
pub use record::{AllocateMode, Data, NewNode, Record, SetAttributes};
pub use request::{
    Batch, Hello, InoRange, ListTree, Lock, LookUp, NodeRange, Request, SeekTarget, SessionRequest,
    WantedLease, WireVersion,
};
pub use response::{
    BatchDone, FailedBatch, Failure, FileSystemStatus, FoundNode, Listing, LockConflict, PathStep,
    Response, SpaceStatus, Welcome,
};
