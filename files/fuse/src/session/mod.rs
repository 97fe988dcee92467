//! A connection to the kernel: requests are read, replies and notifications sent. Reading and
//! replying do not block.
//!
//! The owner's loop reads with [`Session::try_read`], and either polls, or sleeps in
//! [`Session::wait`] or on the session's descriptor together with other descriptors. Every method
//! takes `&self`, so that other threads can reply, and a [`Notifier`] can be used by a thread that
//! serves no requests.
//!
//! # Invariants
//!
//! - **FUSE_SESSION-1** Each request is answered at most once: a second reply fails with
//!   [`ReplyError::Answered`].
//! - **FUSE_SESSION-2** Each request that was read can be answered: a reply that cannot be sent
//!   becomes EIO, so no caller waits forever.
//! - **FUSE_SESSION-3** An interrupt reaches the owner only while the request that it concerns is
//!   unanswered.
//! - **FUSE_SESSION-4** At most `max_unanswered` requests are unanswered. Further ones are answered
//!   with ENOMEM by the session, while forgets and interrupts are still delivered.
//! - **FUSE_SESSION-5** Data of replies is not copied in this process.

mod buffer;
mod device;
mod error;
mod negotiation;
mod notifier;
mod serving;
mod settings;
mod unanswered;

pub use buffer::RequestBuffer;
pub use error::{NotifyError, ReadError, ReplyError};
pub use negotiation::Negotiated;
pub use notifier::Notifier;
pub use serving::{ReadOutcome, Session};
pub use settings::SessionSettings;
