//! `apus doctor` on hosts and paths with one fault each: it reports that fault and no other. A host
//! without faults is reported as clean.
//!
//! Faults are planted in a network of namespaces, or, for settings shared by all namespaces, in a
//! folder that replaces `/proc` and `/sys`. Without namespaces or a required program, a test prints
//! a message and passes.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use apus_doctor::testing::{Report, Root};
use apus_testbed::Error;
use apus_testbed::fabric::{Fabric, Spec, Uplink};

use crate::harness::{program, text};

/// Two hosts with a switch between them, and `apus doctor --listen` on the second host.
struct Network {
    fabric: Fabric,
    program: PathBuf,
    root: Root,
    listener: Option<(Child, BufReader<ChildStdout>)>,
    address: String,
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.listener {
            // Both fail only if the process has already ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns a fabric whose links are fast enough never to limit the rate, so that the packets of a
/// burst arrive together.
fn fast() -> Spec {
    let link = apus_workload::Rate::from_mbps(100_000).unwrap();
    Spec { nodes: 2, link, uplink: Uplink::Free, ..Spec::default() }
}

fn in_namespace(enter: &[OsString], words: &str) -> Output {
    let mut command = Command::new(&enter[0]);
    command
        .args(&enter[1..])
        .args(["/bin/sh", "-c"])
        .arg(format!("PATH=$PATH:/usr/sbin:/sbin; {words}"));
    command.output().unwrap()
}

impl Network {
    /// Builds a network without faults. Returns `None`, with a message, if this machine does not
    /// support it.
    fn open(spec: &Spec) -> Option<Self> {
        let program = program()?;
        let fabric = match Fabric::up(spec) {
            Ok(fabric) => fabric,
            Err(error @ Error::Unavailable { .. }) => {
                eprintln!("SKIPPED: {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let mut network =
            Self { fabric, program, root: Root::clean(), listener: None, address: String::new() };
        // As with network cards, packets must leave the switch one by one and be merged at the
        // receiver. A virtual cable does so only with segmentation offload off at the sending end.
        let ready = network.in_host(0, "ethtool -K fab0 gro on").status.success()
            && network.in_host(1, "ethtool -K fab0 gro on").status.success()
            && network.in_switch("ethtool -K p1 tso off && ethtool -K p2 tso off").status.success();
        if !ready {
            eprintln!(
                "SKIPPED: `ethtool` (package ethtool) is missing, which makes virtual cables behave like network cards"
            );
            return None;
        }
        network.listen();
        Some(network)
    }

    fn in_host(&self, node: usize, words: &str) -> Output {
        in_namespace(&self.fabric.enter(node), words)
    }

    fn in_switch(&self, words: &str) -> Output {
        in_namespace(&self.fabric.layout().enter_switch(), words)
    }

    /// Runs a command in a host that must succeed.
    fn break_host(&self, node: usize, words: &str) {
        let output = self.in_host(node, words);
        assert!(output.status.success(), "{words}: {}", text(&output.stderr));
    }

    fn listen(&mut self) {
        let address = format!("{}:0", self.fabric.address(1));
        self.start(&["doctor", "--listen", &address]);
    }

    /// Starts a service on the second host, replacing the current service.
    fn start(&mut self, words: &[&str]) {
        if let Some((mut child, _)) = self.listener.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let enter = self.fabric.enter(1);
        let mut command = Command::new(&enter[0]);
        command.args(&enter[1..]).arg(&self.program).args(words);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        self.address =
            line.trim_end().strip_prefix("listening on ").expect("an address").to_owned();
        self.listener = Some((child, stdout));
    }

    /// Examines the first host and the path to the second. `/sys` belongs to the namespace if the
    /// system allows the mount.
    fn examine(&self, before: &str, words: &str) -> Report {
        let script = format!(
            "mount -t sysfs sysfs /sys 2>/dev/null; {before} APUS_RUNTIME_DIR={} exec {} doctor {} --json --root {} {words}",
            self.root.runtime().display(),
            self.program.display(),
            self.address,
            self.root.path().display()
        );
        let mut enter = self.fabric.enter(0);
        enter.extend(["unshare", "--mount"].map(OsString::from));
        Report::of(&in_namespace(&enter, &script))
    }
}

/// Plants a fault in a file of the first host and asserts that it is found.
fn assert_found(file: &str, content: &str, (check, severity, mend): (&str, &str, &str)) {
    let Some(network) = Network::open(&fast()) else { return };
    network.root.plant(file, content);
    network.examine("", "").assert_only(check, severity, mend);
}

#[test]
fn a_clean_host_is_reported_as_clean() {
    let Some(network) = Network::open(&fast()) else { return };
    let report = network.examine("", "");
    assert_eq!((report.status, report.faults()), (Some(0), BTreeSet::new()), "{:#}", report.json);
    // The host must not appear clean merely because checks are missing.
    for check in [
        "receive-buffer",
        "segmentation-offload",
        "shared-memory",
        "nonlocal-bind",
        "descriptors",
        "clock-source",
        "frequency",
        "idle-states",
        "cores",
        "cpu-quota",
        "other-load",
        "needless-resends",
        "peer",
        "path-priorities",
        "path-mtu",
        "path-loss",
        "path-merging",
    ] {
        assert_eq!(report.row(check)["severity"], "ok", "{:#}", report.row(check));
    }
    assert_eq!(report.json["experiment"], "doctor");
    // The documentation explains every check; a packaged crate does not contain it.
    if let Ok(page) = fs::read_to_string("../../docs/doctor.md") {
        for row in report.rows() {
            let name = format!("`{}`", row["name"].as_str().unwrap());
            assert!(page.contains(&name), "docs/doctor.md does not explain {name}");
        }
    }
    assert_eq!(report.json["config"]["peer"], network.address);
}

#[test]
fn a_tiny_receive_buffer() {
    let Some(network) = Network::open(&fast()) else { return };
    network.root.plant("proc/sys/net/core/rmem_max", "16384");
    let report = network.examine("", "");
    report.assert_only("receive-buffer", "error", "sysctl -w net.core.rmem_max=4194304");
    // The cost was measured.
    let lost = report.row("receive-buffer")["measured"][0]["value"].as_f64().unwrap();
    assert!(lost > 50.0, "{lost} %");
}

#[test]
fn receive_offload_is_off_at_the_peer() {
    let Some(network) = Network::open(&fast()) else { return };
    network.break_host(1, "ethtool -K fab0 gro off");
    network.examine("", "").assert_only("path-merging", "warning", "ethtool -K DEVICE gro on");
}

#[test]
fn segmentation_offload_is_off() {
    let Some(network) = Network::open(&fast()) else { return };
    network.break_host(0, "ethtool -K fab0 gso off tx-udp-segmentation off");
    let report = network.examine("", "");
    if report.rows().any(|row| row["name"] == "interface") {
        eprintln!("SKIPPED: /sys cannot be mounted in a namespace here");
        return;
    }
    report.assert_only("interface-gso", "warning", "ethtool -K fab0 gso on");
}

#[test]
fn an_mtu_that_the_switch_does_not_carry() {
    let Some(network) = Network::open(&fast()) else { return };
    network.break_host(0, "ip link set dev fab0 mtu 9000");
    let report = network.examine("", "");
    report.assert_only("path-mtu", "error", "ip link set dev fab0 mtu 1500");
    let found = report.row("path-mtu")["found"].as_str().unwrap();
    // Virtual cables of some kernels have room for a VLAN tag.
    assert!(found.starts_with("packets of 9000 bytes vanish on the way; up to 150"), "{found}");
}

/// Makes the switch clear the traffic class of the packets that match `which`, or of all packets if
/// it is empty. Returns `false`, with a message, if that is impossible here.
fn clear_classes(network: &Network, which: &str) -> bool {
    let rules = format!(
        "nft add table bridge strip && nft 'add chain bridge strip all {{ type filter hook forward priority 0; }}' && \
         nft 'add rule bridge strip all {which} ip dscp set cs0'"
    );
    let output = network.in_switch(&rules);
    if !output.status.success() {
        eprintln!("SKIPPED: nftables cannot clear a traffic class here: {}", text(&output.stderr));
    }
    output.status.success()
}

#[test]
fn traffic_classes_are_cleared_on_the_way() {
    for (which, there) in
        [("", "there and back"), ("ip daddr 10.77.0.1", "back"), ("ip daddr 10.77.0.2", "there")]
    {
        let Some(network) = Network::open(&fast()) else { return };
        if !clear_classes(&network, which) {
            return;
        }
        let report = network.examine("", "");
        report.assert_only("path-priorities", "warning", "num_priorities = 1");
        let found = report.row("path-priorities")["found"].as_str().unwrap();
        assert!(
            found.contains(&format!("on the way {there}: ")) && found.contains("0xe0 as 0x00"),
            "{found}"
        );
    }
}

#[test]
fn one_core_for_four_threads() {
    let Some(network) = Network::open(&fast()) else { return };
    let one = "core=$(taskset -cp $$ | sed 's/.*: \\([0-9]*\\).*/\\1/'); taskset -cp $core $$ >/dev/null;";
    let report = network.examine(one, "--threads 4 --poll spin");
    report.assert_only("cores", "error", "poll = \"block\"");
    assert!(report.row("cores")["found"].as_str().unwrap().starts_with("1 core for 4 threads"));
}

#[test]
fn packets_are_lost() {
    let Some(network) = Network::open(&Spec { loss: 0.03, ..fast() }) else { return };
    network.examine("", "").assert_fault("path-loss", "warning", "nstat -z UdpRcvbufErrors");
}

#[test]
fn a_switch_with_a_tiny_buffer() {
    let link = apus_workload::Rate::from_mbps(200).unwrap();
    let Some(network) = Network::open(&Spec { link, buffer: 10_000, ..fast() }) else { return };
    network.examine("", "").assert_fault("path-loss", "error", "unsched_bytes_max = 15000");
}

#[test]
fn any_address_can_be_bound() {
    let Some(network) = Network::open(&fast()) else { return };
    network.break_host(0, "echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind");
    network.examine("", "").assert_only(
        "nonlocal-bind",
        "warning",
        "sysctl -w net.ipv4.ip_nonlocal_bind=0",
    );
}

#[test]
fn a_clock_that_takes_long_to_read() {
    assert_found(
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "hpet",
        ("clock-source", "warning", "echo tsc > /sys/devices/system/clocksource"),
    );
}

#[test]
fn a_governor_that_saves_power() {
    assert_found(
        "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
        "powersave",
        ("frequency", "warning", "cpupower frequency-set --governor performance"),
    );
}

#[test]
fn idle_states_that_take_long_to_leave() {
    assert_found(
        "sys/devices/system/cpu/cpu0/cpuidle/state0/latency",
        "133",
        ("idle-states", "warning", "cpupower idle-set"),
    );
}

#[test]
fn a_control_group_that_limits_processor_time() {
    assert_found("sys/fs/cgroup/cpu.max", "50000 100000", ("cpu-quota", "warning", "CPUQuota="));
}

#[test]
fn a_link_at_a_tenth_of_its_rate() {
    let Some(network) = Network::open(&fast()) else { return };
    network.root.plant("sys/class/net/fab0/speed", "100");
    let report = network.examine("", "");
    if report.rows().any(|row| row["name"] == "interface") {
        eprintln!("SKIPPED: /sys cannot be mounted in a namespace here");
        return;
    }
    report.assert_only("link-rate", "warning", "ethtool -s fab0 autoneg on");
}

#[test]
fn no_service_listens() {
    let Some(mut network) = Network::open(&fast()) else { return };
    let (mut child, _) = network.listener.take().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let report = network.examine("", "");
    report.assert_only("peer", "error", "apus doctor --listen");
    let found = report.row("peer")["found"].as_str().unwrap();
    assert!(found.ends_with("no socket listens on that port"), "{found}");
}

#[test]
fn a_service_reveals_the_way_back() {
    let Some(mut network) = Network::open(&fast()) else { return };
    let address = format!("{}:0", network.fabric.address(1));
    network.start(&["serve", &address]);
    let report = network.examine("", "");
    assert_eq!(report.row("peer")["severity"], "note", "{:#}", report.json);
    assert_eq!(report.row("path-priorities")["severity"], "ok", "{:#}", report.json);
    if clear_classes(&network, "ip daddr 10.77.0.1") {
        network.examine("", "").assert_fault("path-priorities", "warning", "num_priorities = 1");
    }
}
