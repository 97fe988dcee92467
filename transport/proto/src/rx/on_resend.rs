//! RESEND: the receiver of a message lacks bytes of it.

use super::lookup::{Proof, Source, find_rpc, note_known, our_role, rpc_of, was_finished};
use super::send_again::send_again;
use super::unproven::count_answer;
use crate::drop_reason::DropReason;
use crate::protocol::Protocol;
use crate::rpc::{RpcKey, RpcStep};
use crate::timer::InFlight;
use crate::tx::Output;
use apus_wire::{Body, Flags, Header, Profile, Resend, Role};

/// Sends bytes again that the receiver of a message lacks (HM `homa_incoming.c` `homa_resend_pkt`,
/// TIME-7).
pub(super) fn on_resend(
    protocol: &mut Protocol,
    output: &mut Output,
    from: &Source<'_>,
    header: &Header,
    resend: &Resend,
) -> Result<(), DropReason> {
    let Some((peer, rpc)) = find_rpc(&protocol.tables, from, header) else {
        return Err(answer_unknown(protocol, output, from, header, resend));
    };
    rpc_of(&protocol.tables, from, header, Proof::Session)?;
    let in_flight = protocol.timers.in_flight(&protocol.config, protocol.now);
    if our_role(header) == Role::Client {
        note_known(&mut protocol.tables.peers[peer], header, protocol.now);
    }
    let entry = &mut protocol.tables.rpcs[rpc];
    if !entry.step(RpcStep::Resend) {
        // Either the response does not exist yet, or the request has arrived long ago.
        if entry.role() == Role::Server && entry.incoming.is_none() {
            // Its client waits, and need not be asked (RPC-20). Without the whole request it must
            // be asked for the rest, however often it asks for the response.
            protocol.tables.hear_busy(protocol.now, peer, rpc);
        }
        output.control(protocol, rpc, Body::Busy);
        return Ok(());
    }
    let (role, asked) = (entry.role(), entry.unanswered());
    let is_lost = resend_range(protocol, output, rpc, resend, in_flight);
    if role == Role::Server {
        protocol.tables.peers[peer].need_ack.answered(asked);
        // The client is alive and waits for the response, so it need not be asked. A RESEND for
        // bytes that were sent again lately shows nothing: the same one may be repeated forever.
        if is_lost {
            protocol.tables.hear(protocol.now, peer, rpc);
        }
    }
    if !is_lost {
        output.control(protocol, rpc, Body::Busy);
    }
    Ok(())
}

/// Queues the requested bytes that have been sent once (OUTGOING-3, BAD-7). Returns `false` if none
/// are to be sent again: they were never sent, or so recently that they are probably in flight
/// (TIME-7).
///
/// They leave at the level of an unscheduled message of the same length, if the RESEND requests a
/// higher one. Rationale: RESENDs request the highest (HM `homa_incoming.c`
/// `homa_request_retrans`), and where a queue was taken for a loss, tens of kilobytes that are not
/// missing would overtake the short messages of all peers.
fn resend_range(
    protocol: &mut Protocol,
    output: &mut Output,
    rpc: RpcKey,
    resend: &Resend,
    in_flight: InFlight,
) -> bool {
    let highest = protocol.config.highest_priority();
    let entry = &mut protocol.tables.rpcs[rpc];
    let cutoffs = &protocol.tables.peers[entry.peer].cutoffs;
    let Some(message) = &mut entry.outgoing else { return true };
    let mut end = message.sent();
    if !resend.is_everything() {
        end = resend.end().min(message.extent());
        // A receiver that requests bytes has granted them: the GRANT was lost.
        message.grant(end);
    }
    let level = cutoffs.level(end.saturating_sub(resend.offset), highest);
    let asked = if resend.brief { level } else { resend.priority };
    let any_lost =
        send_again(protocol, output, rpc, resend.offset..end, asked.min(level), in_flight);
    if let Some(message) = &mut protocol.tables.rpcs[rpc].outgoing {
        message.note_progress(protocol.now);
    }
    output.outbound.messages.update(&mut protocol.tables.rpcs, rpc);
    any_lost
}

/// Answers a RESEND for an unknown RPC, and states whether it was finished (HM `homa_incoming.c`
/// `homa_resend_pkt` and `homa_rpc_unknown_pkt`). Returns why the packet is not used.
///
/// The kernel profile cannot express that it was finished, so the packet is not answered: a client
/// that receives RPC_UNKNOWN sends its request again, forever, and a client without an answer gives
/// up. As long as it asks, neither its host nor the request is forgotten: otherwise it would be
/// executed again (AMO-7). A client whose host was restarted is answered: it sends the request of
/// its present life (AMO-10).
///
/// A request that was dropped for lack of room is unknown, too. BUSY would spare its bytes (a
/// module short of buffers sends it, because it keeps the RPC and requests the bytes when it has
/// some), but BUSY counts as life: thousands of calls would wait for a few places, asking in turn,
/// and none would ever end in time (TIME-4).
fn answer_unknown(
    protocol: &mut Protocol,
    output: &mut Output,
    from: &Source<'_>,
    header: &Header,
    resend: &Resend,
) -> DropReason {
    let id = header.sender_id.client_id();
    let arrived = protocol.timers.in_flight(&protocol.config, protocol.now).arrived(protocol.now);
    let peers = &mut protocol.tables.peers;
    if output.outbound.identity.profile == Profile::Kernel
        && our_role(header) == Role::Server
        && let Some(peer) = from.peer
    {
        let serving = &mut peers[peer].serving;
        let is_new = resend.is_everything() && serving.asked_anew(id, arrived);
        if !is_new && serving.touch(id, arrived, protocol.now) {
            peers[peer].last_used = protocol.now;
            return DropReason::UnknownRpc;
        }
    }
    if let Err(unanswered) = count_answer(protocol, from, header) {
        return unanswered;
    }
    let finished =
        our_role(header) == Role::Server && was_finished(&protocol.tables.peers, from, header);
    let flags = if finished { Flags::FINISHED } else { Flags::NONE };
    output.echo(*from.address, header, Body::RpcUnknown, flags);
    DropReason::UnknownRpc
}
