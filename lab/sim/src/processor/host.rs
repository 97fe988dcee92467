//! A host behind a processor.

use std::collections::VecDeque;

use super::settings::Processor;
use super::socket::SocketBuffer;
use super::stalls::{Stall, Stalls};
use crate::host::Host;
use crate::message::{HostId, Message, Outcome};
use crate::network::HostCounters;
use crate::packet::Packet;
use apus_proto::{Instant, UnreadBounds};
use apus_workload::time::Nanos;

/// Packets that one pass receives, and payload bytes that it sends. Source: the engine's quotas
/// (`transport/apus/src/overload/quota.rs`).
const RECEIVE_QUOTA: usize = 32;
const SEND_QUOTA: u64 = 1 << 17;
/// Bytes on the wire of packets waiting for the link that block further sending: the socket is
/// full. Source: Linux's default for `net.core.wmem_default`.
const SEND_BUFFER: u64 = 212_992;

/// A host whose transport runs on a processor.
#[derive(Debug)]
pub struct ProcessorHost<H: Host> {
    host: H,
    processor: Processor,
    stalls: Stalls,
    socket: SocketBuffer<H::Body>,
    /// Messages of applications that the processor has not passed to the transport.
    calls: VecDeque<Message>,
    step: Step,
    /// Whether the processor has been idle since the last pass.
    is_idle: bool,
    reading: UnreadBounds,
    /// Pending reports to the host: earliest arrival time of the current pass's packets, if known,
    /// and the time up to which all arrivals have been read after the pass, if changed.
    reports: (Option<Instant>, Option<Instant>),
    /// Packets dropped by the socket and already reported to the host.
    overflows: u64,
    /// Packets that the current pass has received.
    batch: Vec<(Packet, H::Body)>,
    /// Packets that the processor has sent or is sending, in order of readiness.
    sent: VecDeque<Sent<H::Body>>,
    /// Bytes on the wire of the packets in `sent`.
    sent_bytes: u64,
    /// Whether the last pass ended before the transport had sent everything.
    has_more: bool,
    outcomes: VecDeque<Outcome>,
    /// Busy time of the processor.
    busy: Nanos,
    /// Time of the last call.
    now: Nanos,
}

/// Current activity of the processor (PROCESSOR-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Idle.
    Idle,
    /// Receives the batch, until this time.
    Receiving(Nanos),
    /// Sends, until this time.
    Sending(Nanos),
}

/// A packet that the link takes from `ready_at` on.
#[derive(Debug)]
struct Sent<B> {
    ready_at: Nanos,
    packet: Packet,
    body: B,
}

impl<H: Host> ProcessorHost<H> {
    /// Puts a processor between `host` and the fabric. It is stopped during `stalls`, which do not
    /// overlap.
    #[must_use]
    pub fn new(mut host: H, processor: Processor, stalls: Vec<Stall>) -> Self {
        host.set_receive_buffer(processor.socket_buffer);
        Self {
            host,
            processor,
            stalls: Stalls::new(stalls),
            socket: SocketBuffer::new(processor.socket_buffer),
            calls: VecDeque::new(),
            step: Step::Idle,
            is_idle: true,
            reading: UnreadBounds::new(processor.socket_buffer as usize),
            reports: (None, None),
            overflows: 0,
            batch: Vec::with_capacity(RECEIVE_QUOTA),
            sent: VecDeque::new(),
            sent_bytes: 0,
            has_more: false,
            outcomes: VecDeque::new(),
            busy: 0,
            now: 0,
        }
    }

    /// Returns the host behind the processor.
    #[must_use]
    pub const fn inner(&self) -> &H {
        &self.host
    }

    /// Runs `something` on the host behind the processor. Packets that result are sent in the next
    /// pass.
    pub fn attend(&mut self, something: impl FnOnce(&mut H)) {
        something(&mut self.host);
        self.has_more = true;
    }

    /// Returns the number of messages that applications have submitted and the processor has not
    /// passed to the transport.
    #[must_use]
    pub fn waiting_calls(&self) -> usize {
        self.calls.len()
    }

    /// Returns when an idle processor has work to do.
    fn due(&self) -> Option<Nanos> {
        let may_send = self.has_more && self.sent_bytes < SEND_BUFFER;
        if !self.socket.is_empty() || !self.calls.is_empty() || may_send {
            return Some(self.now);
        }
        self.host.next_timeout()
    }

    /// Starts a pass, if there is work and the processor is not stalled.
    fn begin(&mut self) -> bool {
        let is_due = self.due().is_some_and(|at| at <= self.now);
        if !is_due || self.stalls.resumes(self.now) > self.now {
            return false;
        }
        let (mut picos, mut bytes) = (0, 0);
        // A stalled processor does not poll; its last poll was before the stall.
        if std::mem::take(&mut self.is_idle) {
            let polled_at = self.stalls.last_running(self.now);
            self.reading.note_idle(false, Some(Instant::from_nanos(polled_at)));
        }
        let since = self.reading.begin();
        self.reading.note_clock(Instant::from_nanos(self.now));
        while self.batch.len() < RECEIVE_QUOTA
            && let Some((packet, body)) = self.socket.pop()
        {
            picos += self.processor.costs.receive.picos(packet.wire_bytes);
            bytes += packet.wire_bytes as usize;
            self.batch.push((packet, body));
        }
        self.reports = (since, self.reading.finish(bytes, self.socket.is_empty()));
        self.busy += nanos(picos);
        self.step = Step::Receiving(self.end_of(picos));
        true
    }

    /// Passes received packets, calls and timers to the transport, and sends.
    fn work(&mut self) {
        let now = self.now;
        let (since, read_up_to) = self.reports;
        if let Some(since) = since {
            self.host.begin_reading(since.as_nanos());
        }
        for (packet, body) in self.batch.drain(..) {
            self.host.receive(now, &packet, &body);
        }
        if std::mem::replace(&mut self.overflows, self.socket.overflows) < self.socket.overflows {
            self.host.handle_overflow(now);
        }
        if let Some(read_up_to) = read_up_to {
            self.host.finish_reading(read_up_to.as_nanos());
        }
        for message in self.calls.drain(..) {
            self.host.submit(now, &message);
        }
        if self.host.next_timeout().is_some_and(|at| at <= now) {
            self.host.handle_timeout(now);
        }
        self.step = Step::Sending(self.send());
    }

    /// Sends packets of the transport up to the quota. Returns when they have been sent.
    fn send(&mut self) -> Nanos {
        let (mut payload, mut picos) = (0, 0);
        self.has_more = true;
        while payload < SEND_QUOTA && self.sent_bytes < SEND_BUFFER {
            let (mut packet, mut body) = Default::default();
            if !self.host.transmit(self.now, &mut packet, &mut body) {
                self.has_more = false;
                break;
            }
            payload += u64::from(packet.payload);
            picos += self.processor.costs.send.picos(packet.wire_bytes);
            self.sent_bytes += u64::from(packet.wire_bytes);
            self.sent.push_back(Sent { ready_at: self.end_of(picos), packet, body });
        }
        self.busy += nanos(picos);
        self.end_of(picos)
    }

    /// Returns the end of work that starts now and takes `picos` picoseconds.
    fn end_of(&self, picos: u64) -> Nanos {
        self.stalls.end(self.now, nanos(picos))
    }
}

/// Returns a time in nanoseconds, rounded up: no packet takes no time.
const fn nanos(picos: u64) -> Nanos {
    picos.div_ceil(1_000)
}

impl<H: Host> Host for ProcessorHost<H> {
    type Body = H::Body;

    fn submit(&mut self, now: Nanos, message: &Message) {
        self.now = now;
        self.calls.push_back(*message);
    }

    fn receive(&mut self, now: Nanos, packet: &Packet, body: &Self::Body) {
        self.now = now;
        self.socket.push(packet, body);
    }

    fn transmit(&mut self, now: Nanos, packet: &mut Packet, body: &mut Self::Body) -> bool {
        self.now = now;
        if self.sent.front().is_none_or(|next| next.ready_at > now) {
            return false;
        }
        let Some(next) = self.sent.pop_front() else { return false };
        self.sent_bytes -= u64::from(next.packet.wire_bytes);
        (*packet, *body) = (next.packet, next.body);
        true
    }

    fn next_timeout(&self) -> Option<Nanos> {
        let step = match self.step {
            Step::Receiving(until) | Step::Sending(until) => Some(until),
            Step::Idle => self.due().map(|at| self.stalls.resumes(at)),
        };
        // A packet that is already ready waits for the link, which will fetch it.
        let ready = self.sent.front().map(|next| next.ready_at).filter(|at| *at > self.now);
        [step, ready].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.now = now;
        loop {
            match self.step {
                Step::Idle => {
                    if !self.begin() {
                        self.is_idle = true;
                        return;
                    }
                }
                Step::Receiving(until) | Step::Sending(until) if until > now => return,
                Step::Receiving(_) => self.work(),
                Step::Sending(_) => {
                    self.outcomes.extend(std::iter::from_fn(|| self.host.poll_outcome()));
                    self.step = Step::Idle;
                }
            }
        }
    }

    fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    fn withholds(&self) -> bool {
        self.host.withholds()
    }

    fn counters(&self) -> HostCounters {
        let mut counters = self.host.counters();
        counters.socket_overflows += self.socket.overflows;
        counters.dropped_data += self.socket.dropped_data;
        counters.busy += self.busy;
        counters
    }

    fn crash(&mut self, now: Nanos) {
        self.now = now;
        self.socket.clear();
        self.calls.clear();
        self.batch.clear();
        self.sent.clear();
        self.sent_bytes = 0;
        self.has_more = false;
        self.step = Step::Idle;
        self.host.crash(now);
    }

    fn corrupt(body: &mut Self::Body, chance: u64) {
        H::corrupt(body, chance);
    }

    fn id(&self) -> HostId {
        self.host.id()
    }
}
