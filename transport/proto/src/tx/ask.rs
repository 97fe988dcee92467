//! Questions to a peer: RESEND for missing bytes, the session challenge.

use super::output::Output;
use crate::peer::{Address, stated_age};
use crate::protocol::Protocol;
use crate::rpc::{RpcKey, Side};
use crate::time::Instant;
use apus_wire::{Body, Flags, Header, Resend, UdpFields};

impl Output {
    /// Offers `session` to the client of a request with this header, no state of which is kept
    /// (AMO-1), and states the age of this endpoint at `now` (AMO-11). `fields` are the header's.
    pub(crate) fn challenge(
        &mut self,
        now: Instant,
        to: Address,
        header: &Header,
        fields: &UdpFields,
        session: u64,
    ) {
        let claim = UdpFields::claim(fields.incarnation);
        let age = stated_age(self.outbound.identity.born, now);
        let server = self.outbound.identity.server_fields(Some(session));
        let fields = UdpFields { low_water: claim, ..server };
        self.answer_as(to, header, fields, Body::NeedAck, Flags::CONFIRM, age);
    }

    /// Asks the client of `rpc` whether it still has the request, all sendable bytes of which have
    /// arrived: a RESEND for no bytes, answered by BUSY or RPC_UNKNOWN (TIME-15, RPC-20, BAD-7).
    pub(crate) fn ask_whether_known(&mut self, protocol: &mut Protocol, rpc: RpcKey) {
        let entry = &mut protocol.tables.rpcs[rpc];
        let granted = entry.incoming.as_ref().map_or(0, |message| message.granted());
        // Offset and length 0 would mean everything (WIRE-12).
        let offset = granted.max(1);
        entry.ask(protocol.now);
        let peer = entry.peer;
        protocol.tables.peers[peer].resends.sent(protocol.now, 0);
        let priority = protocol.config.highest_priority();
        self.control(
            protocol,
            rpc,
            Body::Resend(Resend { offset, length: 0, priority, brief: false }),
        );
    }

    /// Sends RESENDs for the missing bytes of `rpc`'s incoming message: one per gap and one for the
    /// tail up to the granted limit; if no packet has arrived, one for everything (HM
    /// `homa_incoming.c` `homa_request_retrans`, TIME-5). At most as many as the peer's burst has
    /// room for. Returns `false` if no sendable bytes are missing, or if too much has been
    /// requested already.
    pub(crate) fn request_missing(&mut self, protocol: &mut Protocol, rpc: RpcKey) -> bool {
        let now = protocol.now;
        let priority = protocol.config.highest_priority();
        let entry = &protocol.tables.rpcs[rpc];
        let peer = entry.peer;
        let room = protocol.tables.peers[peer].resends.room() as usize;
        let brief = protocol.tables.peers[peer].variant.is_stripped();
        let wanted: Vec<Resend> = match (&entry.incoming, &entry.side) {
            (None, Side::Client(_)) if room > 0 => vec![Resend::everything(priority)],
            (None, Side::Client(_)) => return false,
            (None, Side::Server(_)) => return false,
            (Some(message), _) => message
                .gaps(message.granted())
                .take(room)
                .map(|gap| {
                    let length = gap.end - gap.start;
                    Resend { offset: gap.start, length, priority, brief: false }
                })
                .collect(),
        };
        if wanted.is_empty() {
            return false;
        }
        protocol.tables.rpcs[rpc].ask(now);
        for resend in wanted {
            let bytes = if resend.length == apus_wire::EVERYTHING { 0 } else { resend.length };
            protocol.tables.peers[peer].resends.sent(now, u64::from(bytes));
            let resend = if brief { Resend { priority: 0, brief, ..resend } } else { resend };
            self.control(protocol, rpc, Body::Resend(resend));
        }
        true
    }
}
