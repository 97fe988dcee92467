//! Incast: a client with many outstanding calls limits the unscheduled bytes of their responses.
//!
//! The responses to many calls may start at the same moment, each with a round-trip time's worth of
//! bytes, and overflow the buffer before the client. Its requests therefore state how many bytes of
//! their response may leave without a GRANT (WIRE-35, PRIO-15). Source: SIGCOMM 2018 section 3.6.

use crate::config::Config;
use crate::limits::FIRST_BYTES;
use apus_wire::{Profile, Waiting};

/// The unscheduled bytes of the responses of all calls together.
#[derive(Debug)]
pub(super) struct Incast {
    /// `incast_unsched_bytes`; 0 for no limit.
    bytes: u64,
}

impl Incast {
    pub(super) fn new(config: &Config) -> Self {
        let is_said = config.profile() == Profile::Udp;
        Self { bytes: if is_said { config.incast_unsched_bytes() } else { 0 } }
    }

    /// The limit that a request states for its response while `calls` calls are outstanding;
    /// packets of responses pass 0 calls, and state none.
    pub(super) fn response_limit(&self, calls: u64) -> Waiting {
        if self.bytes == 0 || calls == 0 {
            return Waiting::UNSAID;
        }
        let share = (self.bytes / calls).max(u64::from(FIRST_BYTES));
        Waiting::of_bytes(u32::try_from(share).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PRIO-15.
    #[test]
    fn calls_share_what_their_responses_may_send() {
        let incast = Incast::new(&Config::builder().incast_unsched_bytes(100_000).build().unwrap());
        let said = |calls| incast.response_limit(calls).bytes();
        assert_eq!([1, 10, 100, 10_000].map(said).map(Option::unwrap), [98_304, 9_216, 960, 128]);
        assert_eq!(said(0), None, "a response");
        assert_eq!(Incast::new(&Config::default()).response_limit(9), Waiting::UNSAID, "it is off");
    }
}
