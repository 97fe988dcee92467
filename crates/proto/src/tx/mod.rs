//! What leaves next?
//!
//! [`fill`] answers that for each `poll_transmit` (SEND-1): control packets first ([`ControlQueue`]), then what
//! must be sent again, then messages in SRPT order ([`SendQueue`]) as far as the [`Pacer`] allows.

mod control;
mod fill;
mod header;
mod pacer;
mod send_queue;
mod transmit;

pub(crate) use control::{ControlPacket, ControlQueue};
pub(crate) use header::Identity;
pub(crate) use pacer::Pacer;
pub(crate) use send_queue::SendQueue;
pub use transmit::Transmit;

use crate::config::Config;
use crate::rpc::RpcKey;
use std::collections::VecDeque;

/// Everything that waits to leave.
#[derive(Debug)]
pub(crate) struct Outbox {
    pub(crate) control: ControlQueue,
    /// RPCs with bytes to be sent again, first come first served.
    pub(crate) resends: VecDeque<RpcKey>,
    pub(crate) messages: SendQueue,
    pub(crate) pacer: Pacer,
    /// Whether the pacer held a message back when it was asked last.
    pub(crate) throttled: bool,
    /// Headers of the packets that leave at present.
    headers: Vec<u8>,
}

impl Outbox {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            control: ControlQueue::default(),
            resends: VecDeque::new(),
            messages: SendQueue::new(config),
            pacer: Pacer::new(config),
            throttled: false,
            headers: Vec::new(),
        }
    }
}
