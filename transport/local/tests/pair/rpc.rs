//! Requests, responses, refusals and cancellations arrive unchanged.

use apus_local::{Disconnected, LocalLimits, PairEvent, SendError};
use apus_wire::Refusal;
use bytes::Bytes;

use crate::peers::{all, pair, small, with_limits};

fn bytes(len: usize, seed: usize) -> Bytes {
    (0..len).map(|i| (i * 31 + seed) as u8).collect::<Vec<_>>().into()
}

#[test]
fn requests_and_responses_of_any_size_arrive() {
    let (client, server) = pair(&small());
    let lengths = [0, 1, 16, 40, 100, 487, 488, 489, 600, 5_000, 100_000];
    for (id, len) in lengths.into_iter().enumerate() {
        let (id, request, response) = (id as u64, bytes(len, 1), bytes(len, 2));
        client.send(id, std::slice::from_ref(&request)).unwrap();
        let mut arrived = Vec::new();
        // A message longer than the ring needs both sides to make progress.
        while arrived.is_empty() {
            arrived = all(&server).unwrap();
            assert_eq!(all(&client).unwrap(), []);
        }
        assert_eq!(arrived, [PairEvent::Request { id, payload: request }], "{len}");
        server.send(id, std::slice::from_ref(&response)).unwrap();
        let mut arrived = Vec::new();
        while arrived.is_empty() {
            arrived = all(&client).unwrap();
            assert_eq!(all(&server).unwrap(), []);
        }
        assert_eq!(arrived, [PairEvent::Response { id, payload: response }], "{len}");
    }
    assert!(client.is_drained() && server.is_drained());
}

#[test]
fn pieces_arrive_as_one_message() {
    let (client, server) = pair(&small());
    let whole = bytes(3_000, 5);
    for cuts in [vec![0, 10, 3_000], vec![0, 0, 1, 2, 2, 2_999, 3_000], vec![0, 3_000]] {
        let pieces: Vec<_> = cuts.windows(2).map(|cut| whole.slice(cut[0]..cut[1])).collect();
        client.send(1, &pieces).unwrap();
        let mut arrived = Vec::new();
        while arrived.is_empty() {
            arrived = all(&server).unwrap();
            all(&client).unwrap();
        }
        assert_eq!(arrived, [PairEvent::Request { id: 1, payload: whole.clone() }], "{cuts:?}");
    }
}

#[test]
fn a_server_refuses_and_a_client_cancels() {
    let (client, server) = pair(&small());
    client.send(7, &[bytes(10, 0)]).unwrap();
    assert_eq!(all(&server).unwrap().len(), 1);
    server.refuse(7, Refusal::Overloaded).unwrap();
    assert_eq!(all(&client).unwrap(), [PairEvent::Refused { id: 7, why: Refusal::Overloaded }]);
    client.cancel(8).unwrap();
    assert_eq!(all(&server).unwrap(), [PairEvent::Cancelled { id: 8 }]);
}

#[test]
fn either_side_asks_the_other_to_freeze_its_trace() {
    let (client, server) = pair(&small());
    client.freeze().unwrap();
    assert_eq!(all(&server).unwrap(), [PairEvent::Freeze]);
    server.freeze().unwrap();
    assert_eq!(all(&client).unwrap(), [PairEvent::Freeze]);
    // It belongs to no message: partial messages continue, whatever their id.
    let payload = bytes(50_000, 0);
    client.send(0, std::slice::from_ref(&payload)).unwrap();
    assert_eq!(all(&server).unwrap(), [], "a part");
    client.freeze().unwrap();
    let mut arrived = Vec::new();
    while arrived.len() < 2 {
        arrived.extend(all(&server).unwrap());
        all(&client).unwrap();
    }
    assert_eq!(arrived, [PairEvent::Freeze, PairEvent::Request { id: 0, payload }]);
}

#[test]
fn a_request_to_freeze_waits_for_room_and_is_sent_once() {
    let (client, server) = pair(&small());
    let mut accepted = 0;
    while client.send(accepted, &[bytes(10, 0)]).is_ok() {
        accepted += 1;
    }
    for _ in 0..1000 {
        client.freeze().unwrap();
    }
    let mut arrived = Vec::new();
    while !arrived.contains(&PairEvent::Freeze) {
        arrived.extend(all(&server).unwrap());
        all(&client).unwrap();
    }
    arrived.extend(all(&server).unwrap());
    let freezes = arrived.iter().filter(|it| **it == PairEvent::Freeze).count();
    assert_eq!((freezes, arrived.len() as u64), (1, accepted + 1));
}

#[test]
fn a_full_ring_refuses_and_reports_room_later() {
    let (client, server) = pair(&small());
    let mut accepted = 0;
    let error = loop {
        match client.send(accepted, &[bytes(100, accepted as usize)]) {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error, SendError::Full);
    assert!(accepted >= 20, "{accepted}");
    assert_eq!(all(&client).unwrap(), [], "no room yet");
    let arrived = all(&server).unwrap();
    assert_eq!(arrived.len() as u64, accepted, "no accepted message is lost");
    for (id, event) in arrived.into_iter().enumerate() {
        assert_eq!(event, PairEvent::Request { id: id as u64, payload: bytes(100, id) });
    }
    assert_eq!(all(&client).unwrap(), [PairEvent::Room]);
    assert_eq!(all(&client).unwrap(), [], "room is reported once");
    client.send(accepted, &[bytes(100, 0)]).unwrap();
}

#[test]
fn a_short_message_does_not_wait_behind_a_long_one() {
    let (client, server) = pair(&small());
    client.send(1, &[bytes(1_000_000, 0)]).unwrap();
    client.send(2, &[bytes(10, 0)]).unwrap();
    assert_eq!(all(&server).unwrap(), [PairEvent::Request { id: 2, payload: bytes(10, 0) }]);
}

#[test]
fn the_shortest_long_message_goes_first() {
    let (client, server) = pair(&small());
    for (id, len) in [(1, 400_000), (2, 100_000), (3, 2_000)] {
        client.send(id, &[bytes(len, 0)]).unwrap();
    }
    let mut order = Vec::new();
    while order.len() < 3 {
        for event in all(&server).unwrap() {
            let PairEvent::Request { id, .. } = event else { panic!("{event:?}") };
            order.push(id);
        }
        all(&client).unwrap();
    }
    assert_eq!(order, [3, 2, 1]);
}

#[test]
fn long_messages_are_bounded_in_bytes() {
    let limits = LocalLimits { max_send_bytes: 50_000, ..LocalLimits::default() };
    let (client, server) = pair(&with_limits(limits));
    client.send(1, &[bytes(60_000, 0)]).unwrap();
    assert_eq!(
        client.send(2, &[bytes(5_000, 0)]),
        Err(SendError::Full),
        "one message is accepted whatever its length"
    );
    client.send(3, &[bytes(10, 0)]).unwrap();
    let mut arrived = Vec::new();
    let mut events = Vec::new();
    while arrived.len() < 2 || events.is_empty() {
        arrived.extend(all(&server).unwrap());
        events.extend(all(&client).unwrap());
    }
    assert_eq!(events, [PairEvent::Room]);
    client.send(2, &[bytes(5_000, 0)]).unwrap();
}

#[test]
fn messages_that_are_too_long_are_refused() {
    let limits = LocalLimits { max_message: 5_000, ..LocalLimits::default() };
    let (client, _server) = pair(&with_limits(limits));
    let refused = SendError::TooLarge { length: 5_001, limit: 5_000 };
    assert_eq!(client.send(1, &[bytes(5_001, 0)]), Err(refused));
}

/// RPC-1: an empty message takes a whole record, in the ring for short ones.
#[test]
fn empty_messages_arrive_one_by_one_whatever_their_pieces() {
    let (client, server) = pair(&small());
    let long = bytes(50_000, 0);
    client.send(9, std::slice::from_ref(&long)).unwrap();
    let ticket = client.send(1, &[]).unwrap();
    client.send(2, &[Bytes::new(), Bytes::new()]).unwrap();
    let mut batch = client.batch().unwrap();
    batch.send(3, &[]).unwrap();
    batch.send(4, &[bytes(10, 0)]).unwrap();
    batch.finish().unwrap();
    assert!(!client.may_have_arrived(ticket), "it was not read");
    let empty = |id| PairEvent::Request { id, payload: Bytes::new() };
    let short = PairEvent::Request { id: 4, payload: bytes(10, 0) };
    assert_eq!(all(&server).unwrap(), [empty(1), empty(2), empty(3), short]);
    assert!(client.may_have_arrived(ticket));
    server.send(2, &[]).unwrap();
    assert_eq!(all(&client).unwrap(), [PairEvent::Response { id: 2, payload: Bytes::new() }]);
    let mut arrived = Vec::new();
    while arrived.is_empty() {
        arrived = all(&server).unwrap();
        all(&client).unwrap();
    }
    assert_eq!(arrived, [PairEvent::Request { id: 9, payload: long }]);
    assert!(client.is_drained() && server.is_drained());
}

/// CAP-6: a record has a head, so that the ring bounds the number of empty messages that were not
/// read.
#[test]
fn empty_messages_fill_the_ring_and_go_around_it() {
    let (client, server) = pair(&small());
    let mut next = 0;
    for round in 0..5 {
        let begin = next;
        while client.send(next, &[]).is_ok() {
            next += 1;
            assert!(next - begin < 100_000, "the ring is full at some time");
        }
        assert_eq!(client.send(next, &[]), Err(SendError::Full));
        assert_eq!(all(&client).unwrap(), [], "no room yet");
        let expected = (begin..next).map(|id| PairEvent::Request { id, payload: Bytes::new() });
        assert_eq!(all(&server).unwrap(), expected.collect::<Vec<_>>(), "round {round}");
        assert_eq!(all(&client).unwrap(), [PairEvent::Room]);
        // The rings start at another offset in the next round.
        client.send(next, &[bytes(100, 0)]).unwrap();
        assert_eq!(all(&server).unwrap().len(), 1);
        next += 1;
    }
}

#[test]
fn a_server_with_a_smaller_limit_refuses() {
    use crate::peers::name;
    use apus_local::{Connecting, Listener};
    let name = name();
    let server_config = with_limits(LocalLimits { max_message: 5_000, ..LocalLimits::default() });
    let listener = Listener::bind(&name, &server_config).unwrap();
    let mut client = Connecting::start(&name, &small()).unwrap();
    let server = listener.accept().unwrap().unwrap().advance().unwrap().unwrap();
    let client = client.advance().unwrap().unwrap();
    client.send(1, &[bytes(50_000, 0)]).unwrap();
    client.send(2, &[bytes(4_000, 0)]).unwrap();
    let mut arrived = Vec::new();
    let mut events = Vec::new();
    while arrived.is_empty() || events.is_empty() {
        arrived.extend(all(&server).unwrap());
        events.extend(all(&client).unwrap());
    }
    assert_eq!(events, [PairEvent::Refused { id: 1, why: Refusal::TooLarge }]);
    assert_eq!(arrived, [PairEvent::Request { id: 2, payload: bytes(4_000, 0) }]);
}

#[test]
fn a_call_that_is_cancelled_midway_frees_its_parts() {
    let (client, server) = pair(&small());
    for id in 0..200 {
        client.send(id, &[bytes(50_000, 0)]).unwrap();
        assert_eq!(all(&server).unwrap(), [], "a part");
        client.cancel(id).unwrap();
        let mut arrived = Vec::new();
        while arrived.is_empty() {
            arrived = all(&server).unwrap();
            all(&client).unwrap();
        }
        assert_eq!(arrived, [PairEvent::Cancelled { id }]);
    }
    // More messages than may be incomplete at a time: if their parts were retained, this one would
    // be refused.
    client.send(999, &[bytes(50_000, 0)]).unwrap();
    let mut arrived = Vec::new();
    while arrived.is_empty() {
        arrived = all(&server).unwrap();
        all(&client).unwrap();
    }
    assert_eq!(arrived, [PairEvent::Request { id: 999, payload: bytes(50_000, 0) }]);
}

#[test]
fn a_response_to_a_cancelled_call_is_ended() {
    let (client, server) = pair(&small());
    for id in 0..200 {
        server.send(id, &[bytes(50_000, 0)]).unwrap();
        assert_eq!(all(&client).unwrap(), [], "a part");
        client.cancel(id).unwrap();
        let mut events = Vec::new();
        while events.is_empty() {
            assert!(all(&server).unwrap().iter().all(|it| *it == PairEvent::Cancelled { id }));
            events = all(&client).unwrap();
        }
        assert_eq!(events, [PairEvent::Refused { id, why: Refusal::Abandoned }]);
    }
}

#[test]
fn unread_messages_have_not_arrived() {
    let (client, server) = pair(&small());
    let short = client.send(1, &[bytes(10, 0)]).unwrap();
    let long = client.send(2, &[bytes(50_000, 0)]).unwrap();
    assert!(!client.may_have_arrived(short) && !client.may_have_arrived(long));
    all(&server).unwrap();
    assert!(client.may_have_arrived(short), "it was read");
    assert!(!client.may_have_arrived(long), "only a part was read");
    drop(server);
    client.handle_signal();
    assert_eq!(all(&client), Err(Disconnected::PeerClosed));
    assert!(client.may_have_arrived(short) && !client.may_have_arrived(long), "also afterwards");
}

#[test]
fn messages_sent_before_the_end_are_received() {
    let (client, server) = pair(&small());
    server.send(1, &[bytes(10, 0)]).unwrap();
    server.close();
    client.handle_signal();
    let mut events = Vec::new();
    let gone = loop {
        match client.receive(Default::default(), &mut events) {
            Ok(_) => {}
            Err(gone) => break gone,
        }
    };
    assert_eq!(events, [PairEvent::Response { id: 1, payload: bytes(10, 0) }]);
    assert_eq!(gone, Disconnected::PeerClosed);
    assert_eq!(
        client.send(2, &[bytes(1, 0)]),
        Err(SendError::Disconnected(Disconnected::PeerClosed))
    );
    assert_eq!(server.send(2, &[bytes(1, 0)]), Err(SendError::Disconnected(Disconnected::Closed)));
}

#[test]
fn a_batch_leaves_together() {
    let (client, server) = pair(&small());
    let mut batch = client.batch().unwrap();
    for id in 0..10 {
        batch.send(id, &[bytes(10, 0)]).unwrap();
    }
    batch.cancel(3);
    batch.finish().unwrap();
    assert_eq!(all(&server).unwrap().len(), 11);
}
