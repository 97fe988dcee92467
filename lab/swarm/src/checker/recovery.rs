//! Recovery checker: overload ends, and retransmissions do not feed themselves.
//!
//! Only for scenarios with an [`Overload`]: hosts with processors, one stall or burst, and no
//! faults except the socket overflows that it causes.
//!
//! - When the stall or burst has ended, the spare capacity of the busiest host works off the
//!   backlog: the time that its processor needs for the packets of all outstanding calls falls to
//!   its maximum before the overload. That takes at most [`GRACE`] plus 1.5 times the time that an
//!   always busy processor would need. Failed calls remain outstanding, because undelivered bytes
//!   are not goodput.
//! - In the whole run, the bytes sent again are at most twice the dropped bytes plus [`A_LITTLE`].
//!
//! Source: lab ADR 10.

use apus_wire::{Body, Role};

use super::contract::Checker;
use super::ranges::Ranges;
use crate::directory::Directory;
use crate::observation::{CallId, HostEvent, Observation, WirePacket};
use crate::scenario::Overload;
use crate::violation::{Violation, ViolationKind};
use apus_workload::time::{MILLISECOND, Nanos};

/// Time to notice the end of the overload: resend intervals have grown during it.
const GRACE: Nanos = 100 * MILLISECOND;
/// Bytes that may be sent again although no packet was dropped: a share of all bytes (one in this
/// number), and an absolute number for short runs. Chosen by us: a thousandth costs hardly
/// anything, and the unscheduled bytes of one message may be in flight twice.
const A_LITTLE: (u64, u64) = (1_000, 100_000);

/// Outstanding calls, and bytes sent and received.
#[derive(Debug)]
pub(crate) struct Recovery {
    overload: Option<Overload>,
    /// Number of planned calls; further calls are probes.
    calls: CallId,
    /// First planned call that is still in the future.
    next: CallId,
    /// Time that the busiest processor needs for the calls that are due and have no response.
    outstanding: Nanos,
    /// Maximum of `outstanding` before the overload; `longest` is the time for the longest call.
    usual: Nanos,
    longest: Nanos,
    /// Once the overload has ended: time when `outstanding` must be down to `usual + longest`.
    limit: Option<Nanos>,
    is_over: bool,
    /// Bytes of requests and responses that were sent.
    sent: Vec<[Ranges; 2]>,
    resent_bytes: u64,
    sent_bytes: u64,
    received_bytes: u64,
    /// DATA packets that were sent and have not been received.
    missing_packets: u64,
}

impl Recovery {
    /// Creates a checker; calls from `probes` on are probes.
    pub(crate) fn new(directory: &Directory, probes: CallId) -> Self {
        let overload = directory.scenario.overload;
        let sent = if overload.is_some() { directory.scenario.calls.len() } else { 0 };
        Self {
            overload,
            calls: probes,
            next: 0,
            outstanding: 0,
            usual: 0,
            longest: 0,
            limit: None,
            is_over: false,
            sent: std::iter::repeat_with(Default::default).take(sent).collect(),
            resent_bytes: 0,
            sent_bytes: 0,
            received_bytes: 0,
            missing_packets: 0,
        }
    }

    /// Makes the calls that are due by `at`.
    fn advance(&mut self, directory: &Directory, overload: Overload, at: Nanos) {
        while self.next < self.calls && directory.call(self.next).at <= at {
            let took = time(directory, overload, self.next);
            self.outstanding += took;
            self.longest = self.longest.max(took);
            if directory.call(self.next).at < overload.from {
                self.usual = self.usual.max(self.outstanding);
            }
            self.next += 1;
        }
    }

    /// Returns the time that a processor needs to repair the loss of all missing packets: it
    /// receives a RESEND for each, answers it, and receives the packet. Some packets are only
    /// queued in a socket: their time is granted to the core as well.
    fn repair(&self, directory: &Directory) -> Nanos {
        let mean =
            self.sent_bytes.saturating_sub(self.received_bytes) / self.missing_packets.max(1);
        self.missing_packets * directory.scenario.repair_time(mean as u32)
    }

    /// Returns the time from the end of the overload until a processor that is always busy has
    /// caught up.
    fn best_time(&self, directory: &Directory, overload: Overload) -> Nanos {
        let mut work = self.outstanding.saturating_sub(self.usual + self.longest);
        work += self.repair(directory);
        for call in self.next..self.calls {
            let made = directory.call(call).at - overload.until;
            if work <= made {
                break;
            }
            work += time(directory, overload, call);
        }
        work
    }

    /// Checks whether the overload ends in time.
    fn check_time(
        &mut self,
        directory: &Directory,
        overload: Overload,
        at: Nanos,
    ) -> Result<(), Violation> {
        if at < overload.until || self.is_over {
            return Ok(());
        }
        if self.limit.is_none() {
            let best = self.best_time(directory, overload);
            self.limit = Some(overload.until + GRACE + 3 * best / 2);
        }
        let limit = self.limit.unwrap_or_default();
        let allowed = self.usual + self.longest;
        self.is_over = self.outstanding <= allowed;
        Violation::unless(self.is_over || at <= limit, ViolationKind::Recovery, None, || {
            (
                format!(
                    "at {limit} ns, {} ns after the overload, outstanding calls need at most {allowed} ns of a processor",
                    limit - overload.until,
                ),
                format!("{} ns; {} bytes were sent again", self.outstanding, self.resent_bytes),
            )
        })
    }

    fn data_sent(&mut self, wire: &WirePacket<'_>) {
        let Body::Data(data, payload) = &wire.packet.body else { return };
        let Some(call) = wire.call else { return };
        let role = usize::from(wire.sender == Role::Client);
        let ranges = &mut self.sent[call as usize][role];
        let before = ranges.bytes();
        ranges.insert(data.offset, data.offset + payload.len() as u32);
        let bytes = payload.len() as u64;
        self.sent_bytes += bytes;
        self.missing_packets += 1;
        self.resent_bytes += bytes - u64::from(ranges.bytes() - before);
    }

    /// Checks the retransmitted bytes; call when no packet is in flight.
    pub(crate) fn check_resends(&self) -> Result<(), Violation> {
        if self.overload.is_none() {
            return Ok(());
        }
        let dropped = self.sent_bytes.saturating_sub(self.received_bytes);
        let little = self.sent_bytes / A_LITTLE.0 + A_LITTLE.1;
        let limit = 2 * dropped + little;
        Violation::unless(self.resent_bytes <= limit, ViolationKind::Recovery, None, || {
            (
                format!(
                    "at most {limit} bytes are sent again: {dropped} of {} were dropped",
                    self.sent_bytes
                ),
                format!("{} bytes are", self.resent_bytes),
            )
        })
    }
}

/// Returns the time that the busiest processor needs for a call.
fn time(directory: &Directory, overload: Overload, call: CallId) -> Nanos {
    directory.scenario.processing_time(directory.call(call), overload.busiest)
}

impl Checker for Recovery {
    fn observe(
        &mut self,
        directory: &Directory,
        observation: &Observation<'_>,
    ) -> Result<(), Violation> {
        let Some(overload) = self.overload else { return Ok(()) };
        self.advance(directory, overload, observation.at);
        match &observation.event {
            HostEvent::Responded(call, _) if *call < self.calls => {
                self.outstanding -= time(directory, overload, *call);
            }
            HostEvent::Sent(wire) => self.data_sent(wire),
            HostEvent::Received(wire) => {
                if let Body::Data(_, payload) = &wire.packet.body {
                    self.received_bytes += payload.len() as u64;
                    self.missing_packets = self.missing_packets.saturating_sub(1);
                }
            }
            _ => {}
        }
        self.check_time(directory, overload, observation.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::tests::{
        CLIENT, SERVER, SESSION, Script, assert_violation, directory, piece,
    };
    use crate::scenario::Processors;
    use apus_proto::{Config, Execution, FailureKind, RpcError};
    use apus_sim::processor::{Costs, Processor};
    use apus_workload::Rate;

    /// One call before a stall of 10 ms, and nine in the middle of it.
    fn stalled() -> Script<Recovery> {
        let lengths = [(200_000, 1_000); 10];
        let mut directory = directory(&lengths, Config::default());
        let costs = Costs::at_rate(Rate::from_mbps(1_000).unwrap(), 1_538);
        let scenario = &mut directory.scenario;
        let processor = Processor { costs, socket_buffer: Processor::SOCKET_BUFFER };
        scenario.processors = Some(Processors { processor, stalls: Vec::new() });
        let (from, until) = (10 * MILLISECOND, 20 * MILLISECOND);
        scenario.overload = Some(Overload { from, until, busiest: SERVER });
        for call in &mut scenario.calls[1..] {
            call.at = 15 * MILLISECOND;
        }
        let checker = Recovery::new(&directory, 10);
        Script { checker, directory, at: 0, session: SESSION }
    }

    /// The client gets the responses to these calls at a time in milliseconds.
    fn respond(
        script: &mut Script<Recovery>,
        calls: std::ops::Range<CallId>,
        at: u64,
    ) -> Result<(), Violation> {
        script.at = at * MILLISECOND;
        calls
            .into_iter()
            .try_for_each(|call| script.observe(CLIENT, HostEvent::Responded(call, b"")))
    }

    /// A call takes the server 0.59 ms. Two of them are usual, and the limit is 100 ms and 1.5
    /// times 3.5 ms.
    #[test]
    fn the_backlog_is_worked_off_in_time() {
        let mut script = stalled();
        respond(&mut script, 0..1, 5).unwrap();
        respond(&mut script, 1..2, 21).unwrap();
        respond(&mut script, 2..8, 125).unwrap();
        respond(&mut script, 8..10, 10_000).unwrap();
    }

    #[test]
    fn a_slow_recovery_is_reported() {
        let mut script = stalled();
        respond(&mut script, 0..1, 5).unwrap();
        respond(&mut script, 1..6, 21).unwrap();
        assert_violation(ViolationKind::Recovery, &respond(&mut script, 6..7, 127));
    }

    #[test]
    fn a_failed_call_stays_outstanding() {
        let mut script = stalled();
        respond(&mut script, 0..1, 5).unwrap();
        script.at = 30 * MILLISECOND;
        let silent = FailureKind::PeerSilent { silent_ms: 10, resends: 1 };
        for call in 1..10 {
            let error = RpcError { kind: silent, execution: Execution::Unknown };
            script.observe(CLIENT, HostEvent::Failed(call, error)).unwrap();
        }
        script.at = 127 * MILLISECOND;
        let error = RpcError { kind: silent, execution: Execution::Unknown };
        assert_violation(
            ViolationKind::Recovery,
            &script.observe(CLIENT, HostEvent::Failed(9, error)),
        );
    }

    /// A call takes the client 1.18 ms, as it sends the request: it may need 100 ms and 1.5 times 7
    /// ms.
    #[test]
    fn the_backlog_of_a_stalled_client_is_worked_off_by_its_own_processor() {
        let mut script = stalled();
        let overload = script.directory.scenario.overload.as_mut().unwrap();
        overload.busiest = CLIENT;
        script.checker = Recovery::new(&script.directory, 10);
        respond(&mut script, 0..1, 5).unwrap();
        respond(&mut script, 1..6, 21).unwrap();
        respond(&mut script, 6..7, 127).unwrap();
        script.at = 133 * MILLISECOND;
        assert_violation(ViolationKind::Recovery, &script.observe(SERVER, HostEvent::Replied(9)));
    }

    /// Sends the whole request of the first call; the server receives it, unless it is dropped.
    fn send(script: &mut Script<Recovery>, is_dropped: bool) {
        for offset in (0..200_000).step_by(1_000) {
            let (data, bytes) = piece(&script.directory, 0, Role::Client, offset, 1_000);
            script.sent(0, Role::Client, Body::Data(data, &bytes)).unwrap();
            if !is_dropped {
                script.received(0, Role::Client, Body::Data(data, &bytes)).unwrap();
            }
        }
    }

    #[test]
    fn dropped_bytes_may_be_sent_again_twice() {
        let mut script = stalled();
        send(&mut script, true);
        send(&mut script, false);
        script.checker.check_resends().unwrap();
        send(&mut script, false);
        script.checker.check_resends().unwrap();
        send(&mut script, false);
        assert_violation(ViolationKind::Recovery, &script.checker.check_resends());
    }

    #[test]
    fn a_needless_retransmission_is_reported() {
        let mut script = stalled();
        send(&mut script, false);
        script.checker.check_resends().unwrap();
        send(&mut script, false);
        assert_violation(ViolationKind::Recovery, &script.checker.check_resends());
    }

    #[test]
    fn runs_without_an_overload_are_not_checked() {
        let mut script = stalled();
        script.directory.scenario.overload = None;
        script.checker = Recovery::new(&script.directory, 10);
        send(&mut script, false);
        send(&mut script, false);
        script.checker.check_resends().unwrap();
        script.at = 127 * MILLISECOND;
        script.observe(SERVER, HostEvent::Replied(9)).unwrap();
    }
}
