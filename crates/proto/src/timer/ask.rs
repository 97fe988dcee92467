//! How are missing bytes asked for?

use crate::rpc::{ClientState, RpcKey, Side};
use crate::transport::Transport;
use apus_wire::{Body, Resend};

impl Transport {
    /// Sends RESENDs for what is missing of `rpc`'s incoming message: one per gap and one for the
    /// tail up to what is granted; if nothing has come, one for everything (row P-12, TIME-5). As many as the
    /// peer's burst has room for. `false` if nothing is missing that the peer may send, or if too much
    /// has been asked for already.
    pub(crate) fn request_missing(&mut self, rpc: RpcKey) -> bool {
        let now = self.now();
        let priority = self.highest_priority();
        let entry = &self.rpcs[rpc];
        let peer = entry.peer;
        let room = self.peers[peer].resends.room() as usize;
        let brief = self.peers[peer].variant.is_stripped();
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
        self.rpcs[rpc].ask(now);
        for resend in wanted {
            let bytes = if resend.length == apus_wire::EVERYTHING { 0 } else { resend.length };
            self.peers[peer].resends.sent(now, u64::from(bytes));
            let resend = if brief { Resend { priority: 0, brief, ..resend } } else { resend };
            self.send_control(rpc, Body::Resend(resend));
        }
        true
    }

    /// Whether the peer should be sending something for `rpc`, so that its silence counts (row T-2, TIME-2).
    pub(crate) fn waits_for_peer(&self, rpc: RpcKey) -> bool {
        let entry = &self.rpcs[rpc];
        match (&entry.side, &entry.outgoing, &entry.incoming) {
            // Our own bytes have not all left.
            (_, Some(message), _) if message.is_sendable() || message.has_resend() => false,
            // A response of which everything granted is here waits for our grants.
            (Side::Client(client), _, Some(message)) if client.state == ClientState::Incoming => {
                message.gaps(message.granted()).next().is_some()
            }
            (Side::Server(_), None, Some(message)) => {
                !entry.may_receive() || message.gaps(message.granted()).next().is_some()
            }
            _ => true,
        }
    }
}
