//! What becomes of the protocol's notes?

use super::Tracer;
use apus_proto::probe::{Piece, ProbeEvent, ProbeKind};
use apus_proto::{FailureKind, Kind, Transport};
use apus_trace::clock::ticks;
use apus_trace::event::DataFields;
use apus_trace::recorder::{self, FreezeReason};
use apus_trace::{Event, Rpc, Side};

impl Tracer {
    /// Notes that are fetched together are of one call into the protocol, and get one time.
    #[cold]
    pub(super) fn record_all(&mut self, first: ProbeEvent, transport: &mut Transport) {
        let now = ticks();
        let mut next = Some(first);
        while let Some(note) = next {
            self.record(&note, now);
            next = transport.poll_probe();
        }
    }

    fn record(&mut self, note: &ProbeEvent, now: u64) {
        // A FREEZE names RPC 0, which is none.
        let id = note.rpc.filter(|id| id.client_id() != 0);
        let Some(rpc) = id.map(|id| self.rpc(id, note.peer)) else {
            return self.note_of_peer(note);
        };
        let record = |event, a, b| recorder::record_rpc_at(now, rpc, event, a, b);
        let record_piece = |event, piece| record_piece(now, rpc, event, piece);
        match note.what {
            ProbeKind::DataSent(piece) => {
                self.leaving.push((rpc, piece.packets, piece.offset));
                record_piece(Event::DataSent, piece);
                self.lost_if(piece.retransmit);
            }
            ProbeKind::DataReceived(piece) => {
                self.came_from_kernel(rpc);
                record_piece(Event::DataReceived, piece);
                self.lost_if(piece.retransmit);
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
                record_piece(Event::ResendSent, asked(offset, length, priority));
            }
            ProbeKind::ResendReceived { offset, length, priority } => {
                record_piece(Event::ResendReceived, asked(offset, length, priority));
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
                record_piece(Event::Lost, asked(offset, length, 0));
            }
            ProbeKind::Restart | ProbeKind::PeerRestart => {
                record(Event::Restart, u32::from(note.what == ProbeKind::PeerRestart), 0);
                self.freeze_if(self.triggers.restart, FreezeReason::Restart);
            }
            ProbeKind::Dropped(reason) => record(Event::Dropped, reason as u32, 0),
            ProbeKind::Failed(reason) => record(Event::Failed, fail_number(reason), 0),
            ProbeKind::Slow { took } => {
                record(Event::Slow, 0, took.as_nanos() as u64);
                self.freeze_if(self.triggers.slow.is_some(), FreezeReason::SlowRpc);
            }
            // What a later protocol may note.
            _ => {}
        }
    }

    /// Records what concerns no RPC: a packet that could not be read, and FREEZE.
    fn note_of_peer(&mut self, note: &ProbeEvent) {
        match note.what {
            ProbeKind::Dropped(reason) => {
                let peer = self.place(note.peer);
                recorder::record_peer(peer, Event::Dropped, reason as u32, 0);
            }
            ProbeKind::Sent { kind: Kind::Freeze, .. } => self.asks_to_freeze(note.peer),
            ProbeKind::Received { kind: Kind::Freeze, .. } => self.asked_to_freeze(note.peer),
            // No other packet is about no RPC.
            _ => {}
        }
    }

    /// A packet of an RPC was in the batch: once for each of its RPCs, as far as their packets come in a row.
    fn came_from_kernel(&mut self, rpc: Rpc) {
        if self.from_kernel != Some(rpc) && self.came > 0 {
            self.from_kernel = Some(rpc);
            recorder::record_rpc_at(self.came, rpc, Event::FromKernel, self.packets, 0);
        }
    }
}

/// 0 is left to reasons without a name: none is there now, but traces that were written tell reasons by these numbers.
pub(super) const fn fail_number(reason: FailureKind) -> u32 {
    1 + reason.index() as u32
}

/// What a RESEND asks for, or a gap is.
const fn asked(offset: u32, length: u32, priority: u8) -> Piece {
    Piece { offset, length, packets: 0, priority, retransmit: false }
}

fn record_piece(at: u64, rpc: Rpc, event: Event, piece: Piece) {
    let Piece { offset, length, packets, priority, retransmit } = piece;
    let packets = u16::try_from(packets).unwrap_or(u16::MAX);
    let (a, b) =
        DataFields { length, offset, packets, priority, retransmitted: retransmit }.to_numbers();
    recorder::record_rpc_at(at, rpc, event, a, b);
}

/// What is recorded when a control packet of this kind leaves, and when it comes. The others say more than their kind.
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
