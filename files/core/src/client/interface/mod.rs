//! The interface of a client: operations and their replies, and effects.

pub(super) mod effect;
pub(super) mod kind;
pub(super) mod operation;
