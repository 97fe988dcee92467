//! Captures of our own traffic.

use std::path::Path;
use std::thread;

use apus::{Endpoint, EndpointBuilder};
use apus_driver::Driver;
use apus_driver::fault::{FaultConfig, Faults, Faulty, PER_MILLION};
use apus_driver::loopback::LoopbackNetwork;
use apus_driver::pcap::Capture;
use apus_socket::{Udp, UdpConfig};

/// Sizes of requests, and of the responses to them: within a packet, within what is unscheduled, and far beyond it.
const SIZES: [usize; 4] = [1, 100, 20_000, 300_000];

/// Calls from one endpoint to another, recorded at the client; gives the number of calls.
fn record(client: &Endpoint, server: &Endpoint, calls: usize) {
    thread::scope(|scope| {
        scope.spawn(|| {
            while let Ok(request) = server.recv_request() {
                let payload = request.payload().clone();
                // The client may have gone.
                let _ = request.reply(payload);
            }
        });
        for call in 0..calls {
            let request = vec![call as u8; SIZES[call % SIZES.len()]];
            client.send(server.local_addr(), request, call as u64).unwrap();
        }
        for _ in 0..calls {
            client.recv_completion().unwrap().result.unwrap();
        }
        assert!(client.drain(std::time::Duration::from_secs(60)), "everything is acknowledged");
        client.shutdown();
        server.shutdown();
    });
}

fn captured<D: Driver + 'static>(driver: D, file: &Path) -> Endpoint {
    let capture = Capture::to_file(driver, file).unwrap();
    EndpointBuilder::default().with_driver(Box::new(capture)).unwrap()
}

/// Over a network in memory that loses three packets in a hundred on the way to the client, behind the place of the
/// capture on the way out and before it on the way in.
pub(crate) fn over_a_bad_network(file: &Path, calls: usize) {
    let network = LoopbackNetwork::new();
    let faults = Faults { loss: PER_MILLION / 100 * 3, ..Faults::none() };
    let lossy = |seed, host| {
        let config = FaultConfig { seed, receive: faults, ..FaultConfig::default() };
        Faulty::new(host, config).unwrap()
    };
    let client = captured(lossy(1, network.host()), file);
    let server =
        EndpointBuilder::default().with_driver(Box::new(lossy(2, network.host()))).unwrap();
    record(&client, &server, calls);
}

/// Over the loopback interface.
pub(crate) fn over_udp(file: &Path, calls: usize) {
    let any = "127.0.0.1:0".parse().unwrap();
    let open = || Udp::open(&UdpConfig { bind: any, ..UdpConfig::default() }).unwrap();
    let client = captured(open(), file);
    let server = EndpointBuilder::default().with_driver(Box::new(open())).unwrap();
    record(&client, &server, calls);
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_decode::{Decoder, Summary, Type};
    use apus_wire::Kind;
    use std::fs::File;

    /// Everything in the capture is understood, and every call has its request and all of its response.
    fn all_calls_are_there(file: &Path, calls: usize) -> Summary {
        let mut decoder = Decoder::open(File::open(file).unwrap(), &[]).unwrap();
        let mut summary = Summary::default();
        for packet in decoder.by_ref() {
            let packet = packet.unwrap();
            assert!(!packet.is_malformed(), "{packet:?}");
            summary.add(&packet);
        }
        assert_eq!(decoder.skipped(), &apus_decode::Skipped::default());
        assert_eq!(summary.times(decoder.rpcs()).unwrap().rpcs, calls);
        for rpc in decoder.rpcs() {
            assert_eq!(rpc.request.length, rpc.response.length, "an echo");
            assert!(rpc.request.complete.is_some(), "{rpc:?}");
        }
        summary
    }

    fn packets(summary: &Summary, kind: Kind) -> u64 {
        let found = summary.types().find(|(name, _)| *name == Type::Kind(kind));
        found.map_or(0, |(_, of_type)| of_type.packets)
    }

    #[test]
    fn what_goes_over_udp_is_understood() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("udp.pcap");
        over_udp(&file, 40);
        let summary = all_calls_are_there(&file, 40);
        assert!(packets(&summary, Kind::Data) > 40 && packets(&summary, Kind::Grant) > 0);
    }

    #[test]
    fn losses_show() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lossy.pcap");
        over_a_bad_network(&file, 40);
        let summary = all_calls_are_there(&file, 40);
        let of_data = summary.types().find(|(name, _)| *name == Type::Kind(Kind::Data)).unwrap().1;
        assert!(of_data.retransmitted > 0 && packets(&summary, Kind::Resend) > 0, "{summary:?}");
    }
}
