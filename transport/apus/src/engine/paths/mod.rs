//! The two paths of a message: [`receive`] polls the network and shared memory, and [`local`] makes
//! calls to peers on the same host through shared memory.

pub(crate) mod local;
pub(crate) mod receive;
