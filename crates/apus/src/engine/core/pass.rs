//! What does a pass of the loop hand to the protocol?
//!
//! A pass is written down in [`poll_loop`](crate::engine::poll_loop); each method here is one of its lines.

use super::Core;
use crate::engine::cpu::CpuPart;
use crate::engine::token::ThreadToken;
use crate::overload::Work;
use apus_driver::{Arrival, Ecn, NetworkError, NetworkReport, ReceiveHalf};
use apus_proto::{Transport, Unreachable};
use apus_trace::recorder;

impl Core {
    /// A pass of the loop begins, with so many packets.
    pub(in crate::engine) fn begin_pass(&mut self, arrived: usize) {
        self.read_clock();
        self.producer = ThreadToken::current();
        self.tracer.renew(&mut self.transport);
        self.budget.begin();
        self.spend(Work::Receive, arrived);
    }

    /// The same, with nothing but what came through memory: the clock can wait.
    pub(in crate::engine) fn begin_local_pass(&mut self) {
        self.producer = ThreadToken::current();
    }

    /// Such a pass ends.
    pub(in crate::engine) fn end_local_pass(&mut self) {
        self.backlog.pass(self.requests.len(), true, self.time);
    }

    /// So much of the present pass's quota was used.
    pub(super) fn spend(&mut self, work: Work, amount: usize) {
        let before = self.budget.exhausted(work);
        self.budget.spend(work, amount);
        if self.budget.exhausted(work) > before {
            recorder::record(apus_trace::Event::QuotaHit, work as u32, 0);
        }
    }

    /// Hands the packets of the last receive to the protocol.
    pub(crate) fn handle_packets(&mut self, receive: &mut dyn ReceiveHalf) {
        let now = self.time;
        let began = self.cpu.begin(CpuPart::Protocol);
        self.backlog.note_poll(now);
        let Self { transport, paths, metrics, backlog, requests, tracer, .. } = self;
        transport.set_request_room(backlog.room(requests.len(), now));
        metrics.receive_batches += 1;
        receive.drain(&mut |arrival: Arrival<'_>| {
            metrics.packets_arrived += 1;
            metrics.congestion_marks += u64::from(arrival.ecn == Ecn::CongestionExperienced);
            if let Some(local) = arrival.to {
                paths.note(arrival.from, local);
            }
            transport.handle_packet(now, arrival.from, arrival.packet);
            tracer.fetch(transport);
        });
        self.cpu.end(CpuPart::Protocol, began);
    }

    /// Tells the protocol what the network says about packets sent earlier.
    pub(crate) fn handle_report(&mut self, report: &NetworkReport<'_>) {
        self.read_clock();
        let now = self.time;
        self.metrics.reports += 1;
        let trouble = match report.error {
            NetworkError::PortClosed => Unreachable::PortClosed,
            NetworkError::ProtocolUnreachable => Unreachable::Protocol,
            NetworkError::HostUnreachable => Unreachable::Host,
            NetworkError::NotPermitted => Unreachable::NotPermitted,
            NetworkError::TooBig => return self.renew_packet_limit(report.peer),
            // A trouble that a later driver may know.
            _ => return,
        };
        if self.transport.recognizes_own_packet(report.peer, report.packet) {
            self.transport.handle_unreachable(now, report.peer, trouble);
        }
    }

    /// Does what has become due.
    pub(crate) fn handle_timers(&mut self) {
        let now = self.time;
        let is_due =
            |transport: &Transport| transport.next_timeout().is_some_and(|(at, _)| at <= now);
        if is_due(&self.transport) {
            // The protocol has a quota of its own: what is left over is still due.
            self.transport.handle_timeout(now);
            self.tracer.fetch(&mut self.transport);
            if is_due(&self.transport) {
                self.spend(Work::Timers, usize::MAX);
            }
        }
        self.handle_local_timers();
    }

    /// Does what the quotas have left over: perhaps nobody goes on with it soon.
    pub(in crate::engine) fn finish(&mut self) {
        if self.more_to_send {
            self.transmit();
        }
        if self.more_to_deliver {
            self.deliver();
            self.assign();
        }
    }
}
