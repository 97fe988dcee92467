//! Captures of apus traffic.

use std::path::Path;
use std::thread;

use apus::{Endpoint, EndpointBuilder};
use apus_driver::Driver;
use apus_driver::fault::{FaultConfig, Faults, Faulty, PER_MILLION};
use apus_driver::loopback::LoopbackNetwork;
use apus_driver::pcap::Capture;
use apus_socket::{Udp, UdpConfig};

/// Lengths of requests and their responses: empty, within one packet, within the unscheduled bytes,
/// and far beyond.
const SIZES: [usize; 5] = [0, 1, 100, 20_000, 300_000];

/// Makes `calls` calls from one endpoint to another, captured at the client.
fn record(client: &Endpoint, server: &Endpoint, calls: usize) {
    thread::scope(|scope| {
        scope.spawn(|| {
            while let Ok(request) = server.recv_request() {
                let payload = request.payload().clone();
                // The client may have closed.
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

/// Captures calls over an in-memory network that drops three percent of the packets to each end:
/// after the point of capture for outgoing packets, before it for incoming packets.
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

/// Captures calls over the loopback interface.
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
    use apus_decode::{Decoder, PacketType, Summary};
    use apus_wire::Kind;
    use std::fs::File;

    /// Asserts that the capture contains no malformed packet, and that every call has its request
    /// and its whole response.
    fn assert_all_calls_are_complete(file: &Path, calls: usize) -> Summary {
        let mut decoder = Decoder::open(File::open(file).unwrap(), &[]).unwrap();
        let mut summary = Summary::default();
        for packet in decoder.by_ref() {
            let packet = packet.unwrap();
            assert!(!packet.is_malformed(), "{packet:?}");
            summary.add(&packet);
        }
        assert_eq!(decoder.skipped(), &apus_decode::SkippedRecords::default());
        assert_eq!(summary.completion_times(decoder.rpcs()).unwrap().rpcs, calls);
        for rpc in decoder.rpcs() {
            assert_eq!(rpc.request.length, rpc.response.length, "an echo");
            assert!(rpc.request.complete.is_some(), "{rpc:?}");
        }
        summary
    }

    fn packets(summary: &Summary, kind: Kind) -> u64 {
        let found = summary.types().find(|(name, _)| *name == PacketType::Kind(kind));
        found.map_or(0, |(_, of_type)| of_type.packets)
    }

    #[test]
    fn udp_traffic_is_decoded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("udp.pcap");
        over_udp(&file, 40);
        let summary = assert_all_calls_are_complete(&file, 40);
        assert!(packets(&summary, Kind::Data) > 40 && packets(&summary, Kind::Grant) > 0);
    }

    #[test]
    fn losses_appear_as_retransmissions() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lossy.pcap");
        over_a_bad_network(&file, 40);
        let summary = assert_all_calls_are_complete(&file, 40);
        let of_data =
            summary.types().find(|(name, _)| *name == PacketType::Kind(Kind::Data)).unwrap().1;
        assert!(of_data.retransmitted > 0 && packets(&summary, Kind::Resend) > 0, "{summary:?}");
    }
}
