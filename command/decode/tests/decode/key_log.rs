//! Sealed packets, opened with a key log.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, thread};

use apus::security::{Security, SecurityMode, SecuritySettings};
use apus::{Endpoint, EndpointBuilder};
use apus_decode::{CapturedPacket, Decoder, KeyLog, PacketType};
use apus_driver::pcap::Capture;
use apus_socket::{Udp, UdpConfig};

/// The folder of the child process.
const FOLDER: &str = "APUS_TEST_KEY_LOG";

const CALLS: usize = 40;

fn endpoint(secret: &Path, capture: Option<&Path>) -> Endpoint {
    let security = Security::new(SecuritySettings {
        mode: SecurityMode::Secret,
        secret: Some(secret.to_path_buf()),
        ..SecuritySettings::default()
    });
    let any = "127.0.0.1:0".parse().unwrap();
    let udp = Udp::open(&UdpConfig { bind: any, ..UdpConfig::default() }).unwrap();
    let builder = EndpointBuilder::default().security(security);
    match capture {
        Some(file) => builder.with_driver(Box::new(Capture::to_file(udp, file).unwrap())),
        None => builder.with_driver(Box::new(udp)),
    }
    .unwrap()
}

/// Captures sealed calls in a separate process, since the variable for the log affects the whole
/// process.
#[test]
#[ignore = "run by `sealed_packets_are_opened_with_a_key_log`"]
fn captures_sealed_calls() {
    let folder = PathBuf::from(env::var(FOLDER).unwrap());
    apus::security::log_keys();
    let secret = folder.join("secret");
    let server = endpoint(&secret, None);
    let client = endpoint(&secret, Some(&folder.join("capture.pcapng")));
    thread::scope(|scope| {
        scope.spawn(|| {
            while let Ok(request) = server.recv_request() {
                let payload = request.payload().clone();
                let _ = request.reply(payload);
            }
        });
        for call in 0..CALLS {
            let request = vec![call as u8; [1, 100, 20_000][call % 3]];
            assert_eq!(client.call(server.local_addr(), request.clone()).unwrap(), request);
        }
        client.shutdown();
        server.shutdown();
    });
}

fn decode(capture: &Path, keys: KeyLog) -> (Vec<PacketType>, usize) {
    let mut decoder = Decoder::open(File::open(capture).unwrap(), &[]).unwrap().with_keys(keys);
    let packets: Vec<_> = decoder.by_ref().map(|packet| packet.unwrap()).collect();
    assert!(!packets.iter().any(CapturedPacket::is_malformed), "{packets:?}");
    let whole = decoder.rpcs().iter().filter(|rpc| {
        let lengths = [rpc.request.length, rpc.response.length];
        lengths[0].is_some() && lengths[0] == lengths[1] && rpc.response.complete.is_some()
    });
    (packets.iter().map(PacketType::of).collect(), whole.count())
}

#[test]
fn sealed_packets_are_opened_with_a_key_log() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, [0x7d; 32]).unwrap();
    fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let log = folder.path().join("log");
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "key_log::captures_sealed_calls", "--ignored", "--nocapture"])
        .env("SSLKEYLOGFILE", &log)
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    let capture = folder.path().join("capture.pcapng");
    let log = KeyLog::parse(&fs::read_to_string(log).unwrap()).unwrap();
    assert_eq!(log.handshakes(), 1);

    let (types, whole) = decode(&capture, log);
    assert_eq!(whole, CALLS);
    // The remaining packets are handshakes.
    let sealed = types.iter().filter(|kind| **kind == PacketType::Sealed).count();
    assert!(sealed < 12, "{types:?}");

    let (types, whole) = decode(&capture, KeyLog::default());
    assert_eq!(whole, 0);
    assert!(types.iter().all(|kind| *kind == PacketType::Sealed), "{types:?}");
}
