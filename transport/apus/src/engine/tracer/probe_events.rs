//! Translation of the protocol's probe events into records.

use super::records::{Tracer, fail_number};
use apus_proto::probe::{Piece, ProbeEvent, ProbeKind};
use apus_proto::{Kind, Transport};
use apus_trace::clock::ticks;
use apus_trace::event::DataFields;
use apus_trace::recorder::{self, FreezeReason};
use apus_trace::{Event, Rpc, Side};

impl Tracer {
    /// Records all probe events of one call into the protocol, with the same time.
    #[cold]
    pub(super) fn record_all(&mut self, first: ProbeEvent, transport: &mut Transport) {
        let now = ticks();
        let mut next = Some(first);
        while let Some(event) = next {
            self.record(&event, now);
            next = transport.poll_probe();
        }
    }

    fn record(&mut self, probe: &ProbeEvent, now: u64) {
        // A FREEZE names RPC 0, which is none.
        let id = probe.rpc.filter(|id| id.client_id() != 0);
        let Some(rpc) = id.map(|id| self.rpc(id, probe.peer)) else {
            return self.record_of_peer(probe);
        };
        let record = |event, a, b| recorder::record_rpc_at(now, rpc, event, a, b);
        let record_piece = |event, piece| record_piece(now, rpc, event, piece);
        match probe.what {
            ProbeKind::DataSent(piece) => {
                self.unsent.push((rpc, piece.packets, piece.offset));
                record_piece(Event::DataSent, piece);
                self.freeze_if_lost(piece.retransmit);
            }
            ProbeKind::DataReceived(piece) => {
                self.record_from_kernel(rpc);
                record_piece(Event::DataReceived, piece);
                self.freeze_if_lost(piece.retransmit);
            }
            ProbeKind::Complete { rpc: id, length } => {
                if rpc.side() == Side::Server {
                    self.complete.push_back((id, rpc));
                }
                record(Event::Parsed, 0, length.into());
            }
            ProbeKind::GrantSent { offset, priority } => {
                record(Event::GrantSent, priority.into(), offset.into());
            }
            ProbeKind::GrantReceived { offset, priority } => {
                record(Event::GrantReceived, priority.into(), offset.into());
            }
            ProbeKind::GrantUsed { offset, priority } => {
                record(Event::GrantUsed, priority.into(), offset.into());
            }
            ProbeKind::ResendSent { offset, length, priority } => {
                record_piece(Event::ResendSent, range(offset, length, priority));
            }
            ProbeKind::ResendReceived { offset, length, priority } => {
                record_piece(Event::ResendReceived, range(offset, length, priority));
            }
            ProbeKind::Sent { kind, flags } => {
                if let Some((event, _)) = control(kind) {
                    record(event, flags.bits().into(), 0);
                }
            }
            ProbeKind::Received { kind, flags } => {
                if let Some((_, event)) = control(kind) {
                    record(event, flags.bits().into(), 0);
                }
            }
            ProbeKind::Throttled { wait } => record(Event::Throttled, 0, wait.as_nanos() as u64),
            ProbeKind::Gap { offset, length } => {
                record_piece(Event::Lost, range(offset, length, 0));
            }
            ProbeKind::Restart | ProbeKind::PeerRestart => {
                record(Event::Restart, u32::from(probe.what == ProbeKind::PeerRestart), 0);
                self.freeze_if(self.triggers.restart, FreezeReason::Restart);
            }
            ProbeKind::Dropped(reason) => record(Event::Dropped, reason as u32, 0),
            ProbeKind::Failed(reason) => record(Event::Failed, fail_number(reason), 0),
            ProbeKind::Slow { took } => {
                record(Event::Slow, 0, took.as_nanos() as u64);
                self.freeze_if(self.triggers.slow.is_some(), FreezeReason::SlowRpc);
            }
            // A later protocol may report more.
            _ => {}
        }
    }

    /// Records events without an RPC: a packet that could not be parsed, and FREEZE.
    fn record_of_peer(&mut self, probe: &ProbeEvent) {
        match probe.what {
            ProbeKind::Dropped(reason) => {
                let peer = self.peer_index(probe.peer);
                recorder::record_peer(peer, Event::Dropped, reason as u32, 0);
            }
            ProbeKind::Sent { kind: Kind::Freeze, .. } => self.freeze_requested_of(probe.peer),
            ProbeKind::Received { kind: Kind::Freeze, .. } => self.freeze_requested_by(probe.peer),
            // All other packets concern an RPC.
            _ => {}
        }
    }

    /// Records that the current batch contained a packet of an RPC: once per run of packets of one
    /// RPC.
    fn record_from_kernel(&mut self, rpc: Rpc) {
        if self.from_kernel != Some(rpc) && self.received_at > 0 {
            self.from_kernel = Some(rpc);
            recorder::record_rpc_at(self.received_at, rpc, Event::FromKernel, self.packets, 0);
        }
    }
}

/// Returns the range of a RESEND or of a gap as a piece.
const fn range(offset: u32, length: u32, priority: u8) -> Piece {
    Piece { offset, length, packets: 0, priority, retransmit: false }
}

fn record_piece(at: u64, rpc: Rpc, event: Event, piece: Piece) {
    let Piece { offset, length, packets, priority, retransmit } = piece;
    let packets = u16::try_from(packets).unwrap_or(u16::MAX);
    let (a, b) =
        DataFields { length, offset, packets, priority, retransmitted: retransmit }.to_numbers();
    recorder::record_rpc_at(at, rpc, event, a, b);
}

/// Returns the events for sending and for receiving a control packet of this kind. The other kinds
/// have separate probe events.
const fn control(kind: Kind) -> Option<(Event, Event)> {
    Some(match kind {
        Kind::Busy => (Event::BusySent, Event::BusyReceived),
        Kind::RpcUnknown => (Event::RpcUnknownSent, Event::RpcUnknownReceived),
        Kind::NeedAck => (Event::NeedAckSent, Event::NeedAckReceived),
        Kind::Ack => (Event::AckSent, Event::AckReceived),
        Kind::Cutoffs => (Event::CutoffsSent, Event::CutoffsReceived),
        Kind::Freeze => (Event::FreezeSent, Event::FreezeReceived),
        Kind::Data | Kind::Grant | Kind::Resend => return None,
    })
}
