//! The fixed part of every envelope, and the kinds of messages.

/// First byte of every envelope: the protocol in the upper half, its version in the lower one.
pub const MAGIC: u8 = 0xa1;

/// Length of the fixed part.
pub const FIXED_LEN: usize = 8;

/// Second byte of an envelope: the kind of message.
pub(super) mod kind {
    pub(in super::super) const CALL: u8 = 1;
    pub(in super::super) const RESPONSE: u8 = 2;
    pub(in super::super) const PUSH: u8 = 3;
    pub(in super::super) const PULL: u8 = 4;
    pub(in super::super) const CANCEL: u8 = 5;
}
