//! What happens on a network that is slow, narrow, or not there?
//!
//! Each test runs again inside a network namespace of its own, which it furnishes with `ip` and `tc`
//! and which ends with it. Ordinary users may do that on most systems; where it is not possible, the
//! test says so and passes.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::process::Command;
use std::time::{Duration, Instant};

use apus_driver::{Burst, Driver, Receive, Transmit, Trouble};
use apus_udp::{Udp, UdpConfig};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Set inside of the namespace.
const INSIDE: &str = "APUS_TEST_NAMESPACE";

/// Runs `body`, which is the test `name`, in a new namespace after the shell has run `setup` there.
fn in_namespace(name: &str, setup: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "--mount", "sh", "-ec", script]);
        command
    };
    let try_out = "command -v ip && command -v tc && ip link set lo up && mount -t sysfs none /sys";
    let tools = unshare(try_out).output();
    if !tools.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: {name} needs unshare, ip, tc, and namespaces");
        return;
    }
    let script = format!("ip link set lo up\n{setup}\nexec \"$0\" --exact {name} --nocapture");
    let test = std::env::current_exe().unwrap();
    let output = unshare(&script).arg(test).env(INSIDE, "1").output().unwrap();
    assert!(
        output.status.success(),
        "in the namespace:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

struct Host {
    transmit: Box<dyn Transmit>,
    receive: Box<dyn Receive>,
    address: SocketAddr,
}

fn open(config: &UdpConfig) -> Host {
    let driver = Udp::open(config).unwrap();
    let address = driver.local_addr();
    let (transmit, receive) = Box::new(driver).split();
    Host { transmit, receive, address }
}

fn bound_to(bind: &str) -> UdpConfig {
    UdpConfig::bound_to(bind.parse().unwrap())
}

impl Host {
    /// Sends `count` packets of `len` bytes that begin with `number`, in one burst.
    fn send(&mut self, to: SocketAddr, number: u32, count: usize, len: usize) {
        let headers = number.to_be_bytes().repeat(count);
        let payload = vec![0; count * (len - 4)];
        let (headers, payload) = (&headers[..], &[&payload[..]][..]);
        let burst = Burst {
            to,
            from: None,
            traffic_class: 0,
            headers,
            header_len: 4,
            payload,
            segment: len - 4,
        };
        self.transmit.send(&burst).unwrap();
    }

    fn flush(&mut self) {
        self.transmit.flush().unwrap();
    }

    /// Takes what is there.
    fn take(&mut self, numbers: &mut Vec<u32>) {
        while self.receive.receive(64).unwrap() > 0 {
            self.receive.drain(&mut |arrival| {
                numbers.push(u32::from_be_bytes(arrival.packet[..4].try_into().unwrap()));
            });
        }
    }

    /// Takes what is there, and waits until there are `count`.
    fn collect(&mut self, numbers: &mut Vec<u32>, count: usize) {
        self.take(numbers);
        while numbers.len() < count {
            wait(&*self.receive, PollFlags::IN);
            self.take(numbers);
        }
    }

    fn troubles(&mut self) -> Vec<(SocketAddr, Trouble)> {
        let mut troubles = Vec::new();
        self.receive.reports(&mut |report| troubles.push((report.peer, report.trouble)));
        troubles
    }
}

/// Waits; the timeout is a watchdog.
fn wait(receive: &dyn Receive, events: PollFlags) {
    let fd = receive.as_fd();
    let timeout = Timespec { tv_sec: 60, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(&fd, events)], Some(&timeout)), Ok(1), "something hangs");
}

/// Sends packets through a link that is too slow for them. All must arrive, once.
fn through_a_slow_link(config: &UdpConfig, len: usize) {
    let (mut client, mut server) = (open(config), open(&bound_to("127.0.0.1:0")));
    let (mut got, mut times_full) = (Vec::new(), 0);
    for number in 0..100 {
        client.send(server.address, number, 10, len);
        client.flush();
        while !client.transmit.has_room() {
            assert!(client.transmit.has_pending(), "T1: what was not sent is kept");
            times_full += 1;
            wait(&*client.receive, PollFlags::OUT);
            client.flush();
            server.take(&mut got);
        }
        assert!(!client.transmit.has_pending(), "D5");
    }
    server.collect(&mut got, 1000);
    got.sort_unstable();
    let sent: Vec<u32> = (0..100).flat_map(|number| [number; 10]).collect();
    assert_eq!(got, sent);
    assert!(times_full > 0, "the link was not slow enough for this test");
}

#[test]
fn a_full_send_buffer_keeps_small_packets_for_later() {
    let setup = "tc qdisc add dev lo root tbf rate 200mbit burst 70kb limit 20mb";
    in_namespace("a_full_send_buffer_keeps_small_packets_for_later", setup, || {
        let config = UdpConfig { send_buffer: 20_000, ..bound_to("127.0.0.1:0") };
        through_a_slow_link(&config, 1000);
    });
}

#[test]
fn a_full_send_buffer_keeps_large_packets_for_later() {
    let setup = "tc qdisc add dev lo root tbf rate 1gbit burst 70kb limit 20mb";
    in_namespace("a_full_send_buffer_keeps_large_packets_for_later", setup, || {
        let config = UdpConfig { send_buffer: 20_000, ..bound_to("127.0.0.1:0") };
        through_a_slow_link(&config, 8000);
    });
}

#[test]
fn a_full_interface_queue_loses_nothing() {
    // The system says ENOBUFS then. Without segmentation, as half of a merged datagram may be lost.
    let setup = "tc qdisc add dev lo root tbf rate 200mbit burst 10kb limit 30kb";
    in_namespace("a_full_interface_queue_loses_nothing", setup, || {
        let config = UdpConfig { segmentation_offload: false, ..bound_to("127.0.0.1:0") };
        through_a_slow_link(&config, 1000);
    });
}

#[test]
fn what_is_handed_over_without_room_is_dropped_and_counted() {
    let setup = "tc qdisc add dev lo root tbf rate 1mbit burst 10kb limit 20mb";
    in_namespace("what_is_handed_over_without_room_is_dropped_and_counted", setup, || {
        let config = UdpConfig { send_buffer: 5_000, ..bound_to("127.0.0.1:0") };
        let driver = Udp::open(&config).unwrap();
        let counters = driver.counters();
        let address = driver.local_addr();
        let (transmit, receive) = Box::new(driver).split();
        let mut client = Host { transmit, receive, address };
        let server = open(&bound_to("127.0.0.1:0"));
        while client.transmit.has_room() {
            client.send(server.address, 0, 10, 1000);
            client.flush();
        }
        client.send(server.address, 1, 7, 1000);
        assert_eq!(counters.packets_dropped(), 7);
    });
}

#[test]
fn a_narrow_path_is_known_and_what_does_not_fit_is_reported() {
    let setup = "ip link set lo mtu 1500";
    in_namespace("a_narrow_path_is_known_and_what_does_not_fit_is_reported", setup, || {
        let (mut client, mut server) =
            (open(&bound_to("127.0.0.1:0")), open(&bound_to("127.0.0.1:0")));
        let to = server.address;
        assert_eq!(client.transmit.packet_limit(to), 1500 - 28);
        let (mut got, mut reports) = (Vec::new(), 0);
        // One packet and several, staged and gathered.
        for (count, len) in [(1, 1473), (3, 2000), (1, 5000), (7, 5000)] {
            client.send(to, 1, 1, 100);
            client.send(to, 0, count, len);
            client.send(to, 2, 3, 1472);
            client.flush();
            got.clear();
            server.collect(&mut got, 4);
            got.sort_unstable();
            assert_eq!(got, [1, 2, 2, 2], "{count} packets of {len} bytes disturb nobody");
            let troubles = client.troubles();
            assert!(troubles.iter().all(|trouble| *trouble == (to, Trouble::TooBig)));
            reports += troubles.len();
        }
        assert_eq!(reports, 4, "one for each send that was refused");
    });
}

#[test]
fn a_missing_route_is_reported() {
    let setup = "
        ip route add prohibit 192.0.2.1
        ip route add unreachable 192.0.2.2
        ip route add blackhole 192.0.2.3";
    in_namespace("a_missing_route_is_reported", setup, || {
        let (mut client, mut server) =
            (open(&bound_to("0.0.0.0:0")), open(&bound_to("127.0.0.1:0")));
        let cases = [
            ("192.0.2.1:7", Trouble::NotPermitted),
            ("192.0.2.2:7", Trouble::HostUnreachable),
            ("192.0.2.3:7", Trouble::HostUnreachable),
            ("192.0.2.4:7", Trouble::HostUnreachable),
        ];
        for (peer, trouble) in cases {
            let peer = peer.parse().unwrap();
            for (count, len) in [(1, 100), (5, 100), (2, 6000)] {
                client.send(peer, 0, count, len);
                client.send(server.address, 1, 1, 100);
                client.flush();
                let mut got = Vec::new();
                server.collect(&mut got, 1);
                assert_eq!(got, [1]);
                let troubles = client.troubles();
                assert!(!troubles.is_empty(), "{peer}");
                assert!(troubles.iter().all(|seen| *seen == (peer, trouble)), "{troubles:?}");
            }
        }
    });
}

#[test]
fn a_host_that_does_not_answer_is_reported_by_icmp() {
    // Nobody has the address; asking for it is given up quickly.
    let setup = "
        ip link add left type veth peer name right
        ip addr add 10.9.0.1/24 dev left
        ip link set left up
        ip link set right up
        echo 1 > /proc/sys/net/ipv4/neigh/left/mcast_solicit
        echo 20 > /proc/sys/net/ipv4/neigh/left/retrans_time_ms";
    in_namespace("a_host_that_does_not_answer_is_reported_by_icmp", setup, || {
        let mut client = open(&bound_to("10.9.0.1:0"));
        let peer: SocketAddr = "10.9.0.2:7".parse().unwrap();
        client.send(peer, 0, 1, 100);
        client.flush();
        assert!(client.troubles().is_empty(), "it is not known yet");
        // The report must wake who waits, and must not wake him again.
        let (mut troubles, began) = (Vec::new(), Instant::now());
        while troubles.is_empty() {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "woken for nothing, again and again"
            );
            wait(&*client.receive, PollFlags::IN);
            client.take(&mut Vec::new());
            troubles = client.troubles();
        }
        assert!(troubles.iter().all(|seen| *seen == (peer, Trouble::HostUnreachable)));
        let fd = client.receive.as_fd();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&now)), Ok(0));
    });
}

#[test]
fn the_rate_of_the_link_is_found() {
    let setup = "
        ip link add left type veth peer name right
        ip addr add 10.9.0.1/24 dev left
        ip link set left up
        ip link set right up
        mount -t sysfs none /sys";
    in_namespace("the_rate_of_the_link_is_found", setup, || {
        let rate = |bind| Udp::open(&bound_to(bind)).unwrap().capabilities().link_mbps;
        // What veth devices say of themselves.
        assert_eq!(rate("10.9.0.1:0"), Some(10_000));
        assert_eq!(rate("127.0.0.1:0"), None);
        assert_eq!(rate("0.0.0.0:0"), None, "there is no real card here");
    });
}
