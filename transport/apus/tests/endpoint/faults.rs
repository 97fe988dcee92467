//! A network that loses, duplicates, reorders and corrupts: no message is lost, and no request is
//! executed twice.

use crate::fixtures::patient;
use crate::{ShutDown, assert_at_rest, bytes};
use apus::{Endpoint, PollMode};
use apus_driver::fault::{FaultConfig, Faults, Faulty, PER_MILLION};
use apus_driver::loopback::LoopbackNetwork;
use std::collections::HashSet;
use std::sync::Mutex;

const PER_CENT: u32 = PER_MILLION / 100;

fn endpoint(network: &LoopbackNetwork, seed: u64, faults: Faults) -> Endpoint {
    let config = FaultConfig { seed, receive: faults, ..FaultConfig::default() };
    let driver = Faulty::new(network.host(), config).unwrap();
    patient().poll_mode(PollMode::Block).with_driver(Box::new(driver)).unwrap()
}

/// Calls of all sizes from one endpoint to another, all of which must return intact, and be
/// executed once.
fn all_calls_survive(seed: u64, faults: Faults, calls: usize) {
    let network = LoopbackNetwork::new();
    let client = endpoint(&network, seed, faults);
    let server = endpoint(&network, seed + 1, faults);
    let executed = Mutex::new(HashSet::new());
    std::thread::scope(|scope| {
        let _shutdown = ShutDown(&[&server]);
        scope.spawn(|| {
            while let Ok(request) = server.recv_request() {
                let payload = request.payload().clone();
                let number = u64::from_be_bytes(payload[..8].try_into().unwrap());
                assert!(executed.lock().unwrap().insert(number), "call {number} executed twice");
                // Fails if the client has the response already.
                let _ = request.reply(payload);
            }
        });
        let request = |number: usize| {
            let size = [8, 100, 1_416, 1_417, 20_000, 200_000][number % 6];
            let mut payload = bytes(number, size);
            payload[..8].copy_from_slice(&(number as u64).to_be_bytes());
            payload
        };
        for number in 0..calls {
            client.send(server.local_addr(), request(number), number as u64).unwrap();
        }
        for _ in 0..calls {
            let end = client.recv_completion().unwrap();
            let number = end.cookie as usize;
            let payload = end.result.unwrap_or_else(|error| panic!("call {number}: {error}"));
            assert_eq!(payload, request(number), "call {number}");
        }
        assert_at_rest(&[&client, &server]);
    });
    assert_eq!(executed.into_inner().unwrap().len(), calls);
}

#[test]
fn one_per_cent_loss() {
    all_calls_survive(1, Faults { loss: PER_CENT, ..Faults::none() }, 120);
}

#[test]
fn twenty_per_cent_loss() {
    all_calls_survive(2, Faults { loss: 20 * PER_CENT, ..Faults::none() }, 60);
}

#[test]
fn duplication_and_reordering() {
    let faults =
        Faults { duplication: 10 * PER_CENT, reordering: 20 * PER_CENT, hold: 5, ..Faults::none() };
    all_calls_survive(3, faults, 120);
}

#[test]
fn everything_at_once() {
    let faults = Faults {
        loss: 5 * PER_CENT,
        duplication: 5 * PER_CENT,
        reordering: 10 * PER_CENT,
        hold: 3,
        ..Faults::none()
    };
    all_calls_survive(4, faults, 60);
}
