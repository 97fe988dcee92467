//! The answer for a client that has ended: it needs no state.

use crate::ack::AckList;
use crate::header::{Dialect, Header, KernelFields};
use crate::lengths::MAX_HEADER_LEN;
use crate::packet::{Body, Packet};
use crate::profile::Profile;
use crate::sender_id::{Role, SenderId};

/// Returns the ACK to a NEED_ACK of the kernel profile whose client has ended; `None` if `packet`
/// is something else. The ACK's source port is that client's (RPC-19).
///
/// The caller has checked that no endpoint of the host has that port. A call has the port of its
/// endpoint from its first packet on, so that no live call is acknowledged.
#[must_use]
pub fn acknowledge_for_ended_client(packet: &[u8]) -> Option<[u8; MAX_HEADER_LEN]> {
    let asked = Packet::parse(Profile::Kernel, packet).ok()?;
    let id = asked.header.sender_id;
    if !matches!(asked.body, Body::NeedAck) || id.sender() != Role::Server {
        return None;
    }
    let body = Body::Ack(AckList::EMPTY);
    let (sport, dport) = (asked.header.dport, asked.header.sport);
    let id = SenderId::new(id.client_id(), Role::Client);
    let dialect = Dialect::Kernel(KernelFields::OURS);
    let header = Header::new(body.kind(), sport, dport, id, dialect);
    let mut bytes = [0; MAX_HEADER_LEN];
    let len = Packet { header, body }.emit_header(&mut bytes);
    debug_assert_eq!(len, MAX_HEADER_LEN, "an ACK of the kernel profile is always full");
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    extern crate std;
    use std::vec::Vec;

    fn packet(body: Body<'_>, sender: Role) -> Vec<u8> {
        let dialect = Dialect::Kernel(KernelFields::OURS);
        let id = SenderId::new(1 << 63 | 6, sender);
        let header = Header::new(body.kind(), 4000, 50_000, id, dialect);
        let mut bytes = [0; MAX_HEADER_LEN];
        let len = Packet { header, body }.emit_header(&mut bytes);
        bytes[..len].to_vec()
    }

    /// RPC-19; HM `homa_incoming.c` `homa_ack_pkt` ends the RPC that the header names.
    #[test]
    fn a_need_ack_is_answered_in_the_name_of_its_client() {
        let answer = acknowledge_for_ended_client(&packet(Body::NeedAck, Role::Server)).unwrap();
        let answer = Packet::parse(Profile::Kernel, &answer).unwrap();
        assert_eq!(answer.body.kind(), Kind::Ack);
        assert_eq!((answer.header.sport, answer.header.dport), (50_000, 4000));
        assert_eq!(answer.header.sender_id, SenderId::new(1 << 63 | 6, Role::Client));
    }

    #[test]
    fn nothing_else_is_answered() {
        for (body, sender) in [
            (Body::NeedAck, Role::Client),
            (Body::Busy, Role::Server),
            (Body::RpcUnknown, Role::Server),
            (Body::Ack(AckList::EMPTY), Role::Server),
        ] {
            assert_eq!(acknowledge_for_ended_client(&packet(body, sender)), None);
        }
        let short = &packet(Body::NeedAck, Role::Server)[..27];
        assert_eq!(acknowledge_for_ended_client(short), None);
    }
}
