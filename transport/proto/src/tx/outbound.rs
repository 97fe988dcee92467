//! The sending side of an endpoint: its identity, and everything that waits to leave.

use super::control::ControlQueue;
use super::identity::Identity;
use super::incast::Incast;
use super::pacer::Pacer;
use super::resend_queue::ResendQueue;
use super::send_queue::SendQueue;
use crate::config::Config;
use crate::time::Instant;

/// The sending side of an endpoint.
#[derive(Debug)]
pub(crate) struct Outbound {
    /// The endpoint's identity, stated in every packet.
    pub(crate) identity: Identity,
    /// Control packets that wait to leave.
    pub(crate) control: ControlQueue,
    /// Bytes of the datagram that is being handled, if it holds several packets; else 0.
    pub(crate) answered: u16,
    /// RPCs with bytes to be sent again.
    pub(super) resends: ResendQueue,
    /// Messages with bytes that may be sent for the first time.
    pub(crate) messages: SendQueue,
    /// Limits what responses to this endpoint send without a GRANT.
    pub(super) incast: Incast,
    /// Bounds the backlog of the network interface.
    pub(crate) pacer: Pacer,
    /// Whether the pacer held a message back at the last choice.
    pub(super) throttled: bool,
    /// The rate of the link that unscheduled bytes are computed with, in Mbit/s.
    pub(crate) link_mbps: u64,
    /// Headers of the packets that leave at present.
    pub(super) headers: Vec<u8>,
}

impl Outbound {
    /// An empty sending side. The link carries `link_mbps` Mbit/s.
    pub(crate) fn new(config: &Config, identity: Identity, link_mbps: u64) -> Self {
        Self {
            identity,
            control: ControlQueue::default(),
            answered: 0,
            resends: ResendQueue::default(),
            messages: SendQueue::new(config),
            incast: Incast::new(config),
            pacer: Pacer::new(config),
            throttled: false,
            link_mbps,
            headers: Vec::new(),
        }
    }

    /// When the pacer lets messages leave again; `None` if it holds none back.
    pub(crate) fn throttled_until(&self, now: Instant) -> Option<Instant> {
        let waiting = self.messages.has_long() || !self.resends.is_empty();
        let throttled = waiting && self.pacer.room(now).is_none();
        throttled.then(|| self.pacer.next_room())
    }
}
