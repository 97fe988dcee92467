//! What does a BUSY do?

use super::{Proof, Source};
use crate::drop_reason::DropReason;
use crate::rpc::Side;
use crate::transport::Transport;
use apus_wire::{Flags, Header};

impl Transport {
    /// The peer lives, we shall wait (row P-15). With CONFIRM, a client says that the call which we
    /// asked about lives (requirement AMO-2).
    pub(super) fn on_busy(&mut self, from: Source, header: &Header) -> Result<(), DropReason> {
        let (peer, rpc) = self.rpc_of(from, header, Proof::NotContradicting)?;
        self.hear_busy(peer, rpc);
        let Some(fields) = header.udp().filter(|f| f.flags.contains(Flags::CONFIRM)) else {
            return Ok(());
        };
        match self.rpcs[rpc].side {
            Side::Server(_) => self.confirm(rpc, fields.incarnation),
            Side::Client(_) => Err(DropReason::WrongRole),
        }
    }

    /// A held RPC counts its questions until the answer, so that the round-trip time can be read.
    fn hear_busy(&mut self, peer: crate::peer::PeerId, rpc: crate::rpc::RpcKey) {
        if self.rpcs[rpc].may_receive() {
            self.hear(peer, rpc);
        }
    }
}
