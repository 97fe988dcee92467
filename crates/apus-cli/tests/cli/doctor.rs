//! Situation: something is wrong with a host, or with the path to a peer. Each fault is planted by itself, in a network
//! of namespaces, or, where no namespace has its own, in a folder that stands in for `/proc` and `/sys`; the doctor finds
//! it and nothing else. A host that is clean is reported as clean.
//!
//! Where this machine does not allow namespaces, or lacks a program, tests say so and pass.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use apus_lab::Error;
use apus_lab::fabric::{Fabric, Spec, Uplink};
use apus_lab::machine::{Cores, pin};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::service::{apus, object, text};

/// What a host has in `/proc` and `/sys` with which nothing is wrong.
const CLEAN: [(&str, &str); 15] = [
    ("proc/stat", "cpu  10 0 10 1000 0 0 0 0 0 0"),
    ("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0"),
    ("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0"),
    ("proc/sys/net/core/rmem_max", "4194304"),
    ("proc/sys/net/core/wmem_max", "4194304"),
    (
        "proc/self/limits",
        "Max open files            4096                 4096                 files",
    ),
    ("proc/self/cgroup", "0::/"),
    ("sys/fs/cgroup/cpu.max", "max 100000"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
    ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/name", "C1"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "2"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/disable", "0"),
    ("sys/class/net/fab0/duplex", "full"),
];

/// A folder that stands in for the system's own.
struct Root(tempfile::TempDir);

impl Root {
    fn clean() -> Self {
        let root = Self(tempfile::tempdir().unwrap());
        CLEAN.iter().for_each(|(file, content)| root.plant(file, content));
        root
    }

    fn plant(&self, file: &str, content: &str) {
        let place = self.0.path().join(file);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Two hosts and a switch between them, and a doctor that listens on the second one.
struct Ward {
    fabric: Fabric,
    root: Root,
    listener: Option<(Child, BufReader<ChildStdout>)>,
    address: String,
}

impl Drop for Ward {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.listener {
            // Both fail only if it has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// So fast that the cores are what is slow, and that packets of a burst come together.
fn usual() -> Spec {
    let fast = apus_sim::Rate::from_mbps(100_000).unwrap();
    Spec { nodes: 2, link: fast, uplink: Uplink::Free, ..Spec::default() }
}

fn in_namespace(enter: &[OsString], words: &str) -> Output {
    let mut command = Command::new(&enter[0]);
    command
        .args(&enter[1..])
        .args(["/bin/sh", "-c"])
        .arg(format!("PATH=$PATH:/usr/sbin:/sbin; {words}"));
    command.output().unwrap()
}

impl Ward {
    /// A network in which nothing is wrong; `None`, with a word, where this machine has none.
    fn open(spec: &Spec) -> Option<Self> {
        let fabric = match Fabric::up(spec) {
            Ok(fabric) => fabric,
            Err(Error::Fabric(refusal)) => {
                eprintln!("SKIPPED: {refusal}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let mut ward = Self { fabric, root: Root::clean(), listener: None, address: String::new() };
        // Packets come from a switch one by one, and are put together where they arrive, as on a card. A virtual
        // cable does that only if the other end would not have kept them together.
        let ready = ward.in_host(0, "ethtool -K fab0 gro on").status.success()
            && ward.in_host(1, "ethtool -K fab0 gro on").status.success()
            && ward.in_switch("ethtool -K p1 tso off && ethtool -K p2 tso off").status.success();
        if !ready {
            eprintln!(
                "SKIPPED: there is no `ethtool` (package ethtool) to set virtual cables up as cards are"
            );
            return None;
        }
        ward.listen();
        Some(ward)
    }

    fn in_host(&self, node: usize, words: &str) -> Output {
        in_namespace(&self.fabric.enter(node), words)
    }

    fn in_switch(&self, words: &str) -> Output {
        in_namespace(&self.fabric.layout().enter_switch(), words)
    }

    /// The same, where it has to work.
    fn break_host(&self, node: usize, words: &str) {
        let output = self.in_host(node, words);
        assert!(output.status.success(), "{words}: {}", text(&output.stderr));
    }

    fn listen(&mut self) {
        let address = format!("{}:0", self.fabric.address(1));
        self.start(&["doctor", "--listen", &address]);
    }

    /// Runs a service in the second host in place of what ran there.
    fn start(&mut self, words: &[&str]) {
        if let Some((mut child, _)) = self.listener.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let enter = self.fabric.enter(1);
        let mut command = Command::new(&enter[0]);
        command.args(&enter[1..]).arg(env!("CARGO_BIN_EXE_apus")).args(words);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        self.address =
            line.trim_end().strip_prefix("listening on ").expect("an address").to_owned();
        self.listener = Some((child, stdout));
    }

    /// Examines the first host and the path to the second one. `/sys` is that of the namespace, where the system
    /// lets it be mounted.
    fn examine(&self, before: &str, words: &str) -> Examined {
        let script = format!(
            "mount -t sysfs sysfs /sys 2>/dev/null; {before} exec {} doctor {} --json --root {} {words}",
            env!("CARGO_BIN_EXE_apus"),
            self.address,
            self.root.path().display()
        );
        let mut enter = self.fabric.enter(0);
        enter.extend(["unshare", "--mount"].map(OsString::from));
        Examined::of(&in_namespace(&enter, &script))
    }
}

/// What a doctor said.
struct Examined {
    status: Option<i32>,
    report: Value,
}

impl Examined {
    fn of(output: &Output) -> Self {
        assert!(!output.stdout.is_empty(), "{}", text(&output.stderr));
        Self { status: output.status.code(), report: object(output) }
    }

    fn rows(&self) -> impl Iterator<Item = &Value> {
        self.report["rows"].as_array().unwrap().iter()
    }

    fn row(&self, check: &str) -> &Value {
        let row = self.rows().find(|row| row["name"] == check);
        row.unwrap_or_else(|| panic!("no {check}: {}", self.report))
    }

    /// The checks that found something to mend.
    fn faults(&self) -> BTreeSet<&str> {
        let faults =
            self.rows().filter(|row| row["severity"] == "error" || row["severity"] == "warning");
        faults.map(|row| row["name"].as_str().unwrap()).collect()
    }

    /// It has found this and nothing else, says why it matters, and how to mend it.
    fn only(&self, check: &str, severity: &str, mend: &str) {
        assert_eq!(self.faults(), BTreeSet::from([check]), "{:#}", self.report);
        self.among(check, severity, mend);
    }

    /// It has found this.
    fn among(&self, check: &str, severity: &str, mend: &str) {
        let row = self.row(check);
        assert_eq!(row["severity"], severity, "{row:#}");
        assert_eq!(self.status, Some(1), "{row:#}");
        assert!(!row["why"].as_str().unwrap().is_empty(), "{row:#}");
        let commands = row["mend"].as_array().unwrap();
        let is_there = commands.iter().any(|each| each.as_str().unwrap().contains(mend));
        assert!(is_there, "{mend}: {row:#}");
    }
}

/// A fault in a file of the first host.
fn planted(file: &str, content: &str, (check, severity, mend): (&str, &str, &str)) {
    let Some(ward) = Ward::open(&usual()) else { return };
    ward.root.plant(file, content);
    ward.examine("", "").only(check, severity, mend);
}

#[test]
fn a_clean_host_is_reported_as_clean() {
    let Some(ward) = Ward::open(&usual()) else { return };
    let examined = ward.examine("", "");
    assert_eq!(
        (examined.status, examined.faults()),
        (Some(0), BTreeSet::new()),
        "{:#}",
        examined.report
    );
    // And that is not because nothing was looked at.
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
        "peer",
        "path-priorities",
        "path-mtu",
        "path-loss",
        "path-merging",
    ] {
        assert_eq!(examined.row(check)["severity"], "ok", "{:#}", examined.row(check));
    }
    assert_eq!(examined.report["experiment"], "doctor");
    // What a check is about can be looked up; only a checkout has the page.
    if let Ok(page) = fs::read_to_string("../../docs/doctor.md") {
        for row in examined.rows() {
            let name = format!("`{}`", row["name"].as_str().unwrap());
            assert!(page.contains(&name), "docs/doctor.md does not explain {name}");
        }
    }
    assert_eq!(examined.report["config"]["peer"], ward.address);
}

#[test]
fn a_tiny_receive_buffer() {
    let Some(ward) = Ward::open(&usual()) else { return };
    ward.root.plant("proc/sys/net/core/rmem_max", "16384");
    let examined = ward.examine("", "");
    examined.only("receive-buffer", "error", "sysctl -w net.core.rmem_max=4194304");
    // What it costs was tried out.
    let lost = examined.row("receive-buffer")["measured"][0]["value"].as_f64().unwrap();
    assert!(lost > 50.0, "{lost} %");
}

#[test]
fn receive_offload_is_off_at_the_peer() {
    let Some(ward) = Ward::open(&usual()) else { return };
    ward.break_host(1, "ethtool -K fab0 gro off");
    ward.examine("", "").only("path-merging", "warning", "ethtool -K DEVICE gro on");
}

#[test]
fn segmentation_offload_is_off() {
    let Some(ward) = Ward::open(&usual()) else { return };
    ward.break_host(0, "ethtool -K fab0 gso off tx-udp-segmentation off");
    let examined = ward.examine("", "");
    if examined.rows().any(|row| row["name"] == "interface") {
        eprintln!("SKIPPED: /sys cannot be mounted in a namespace here");
        return;
    }
    examined.only("interface-gso", "warning", "ethtool -K fab0 gso on");
}

#[test]
fn an_mtu_that_the_switch_does_not_carry() {
    let Some(ward) = Ward::open(&usual()) else { return };
    ward.break_host(0, "ip link set dev fab0 mtu 9000");
    let examined = ward.examine("", "");
    examined.only("path-mtu", "error", "ip link set dev fab0 mtu 1500");
    let found = examined.row("path-mtu")["found"].as_str().unwrap();
    // Some kernels' virtual cables leave room for a tag.
    assert!(found.starts_with("packets of 9000 bytes vanish on the way; up to 150"), "{found}");
}

/// Lets the switch clear the traffic class of all packets, or of those to one host.
fn strip(ward: &Ward, which: &str) -> bool {
    let rules = format!(
        "nft add table bridge strip && nft 'add chain bridge strip all {{ type filter hook forward priority 0; }}' && \
         nft 'add rule bridge strip all {which} ip dscp set cs0'"
    );
    let output = ward.in_switch(&rules);
    if !output.status.success() {
        eprintln!(
            "SKIPPED: no rule of nftables can clear a traffic class: {}",
            text(&output.stderr)
        );
    }
    output.status.success()
}

#[test]
fn traffic_classes_are_cleared_on_the_way() {
    for (which, there) in
        [("", "there and back"), ("ip daddr 10.77.0.1", "back"), ("ip daddr 10.77.0.2", "there")]
    {
        let Some(ward) = Ward::open(&usual()) else { return };
        if !strip(&ward, which) {
            return;
        }
        let examined = ward.examine("", "");
        examined.only("path-priorities", "warning", "num_priorities = 1");
        let found = examined.row("path-priorities")["found"].as_str().unwrap();
        assert!(
            found.contains(&format!("on the way {there}: ")) && found.contains("0xe0 as 0x00"),
            "{found}"
        );
    }
}

#[test]
fn one_core_for_four_threads() {
    let Some(ward) = Ward::open(&usual()) else { return };
    let one = "core=$(taskset -cp $$ | sed 's/.*: \\([0-9]*\\).*/\\1/'); taskset -cp $core $$ >/dev/null;";
    let examined = ward.examine(one, "--threads 4 --poll spin");
    examined.only("cores", "error", "poll = \"block\"");
    assert!(examined.row("cores")["found"].as_str().unwrap().starts_with("1 core for 4 threads"));
}

#[test]
fn packets_get_lost() {
    let Some(ward) = Ward::open(&Spec { loss: 0.03, ..usual() }) else { return };
    ward.examine("", "").among("path-loss", "warning", "nstat -z UdpRcvbufErrors");
}

#[test]
fn a_switch_with_hardly_any_buffer() {
    let link = apus_sim::Rate::from_mbps(200).unwrap();
    let Some(ward) = Ward::open(&Spec { link, buffer: 10_000, ..usual() }) else { return };
    ward.examine("", "").among("path-loss", "error", "unsched_bytes_max = 15000");
}

#[test]
fn any_address_can_be_bound() {
    let Some(ward) = Ward::open(&usual()) else { return };
    ward.break_host(0, "echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind");
    ward.examine("", "").only("nonlocal-bind", "warning", "sysctl -w net.ipv4.ip_nonlocal_bind=0");
}

#[test]
fn a_clock_that_takes_long_to_read() {
    planted(
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "hpet",
        ("clock-source", "warning", "echo tsc > /sys/devices/system/clocksource"),
    );
}

#[test]
fn a_governor_that_saves_power() {
    planted(
        "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
        "powersave",
        ("frequency", "warning", "cpupower frequency-set --governor performance"),
    );
}

#[test]
fn idle_states_that_take_long_to_leave() {
    planted(
        "sys/devices/system/cpu/cpu0/cpuidle/state0/latency",
        "133",
        ("idle-states", "warning", "cpupower idle-set"),
    );
}

#[test]
fn a_control_group_that_limits_processor_time() {
    planted("sys/fs/cgroup/cpu.max", "50000 100000", ("cpu-quota", "warning", "CPUQuota="));
}

#[test]
fn a_link_that_has_negotiated_a_tenth_of_what_it_can() {
    let Some(ward) = Ward::open(&usual()) else { return };
    ward.root.plant("sys/class/net/fab0/speed", "100");
    let examined = ward.examine("", "");
    if examined.rows().any(|row| row["name"] == "interface") {
        eprintln!("SKIPPED: /sys cannot be mounted in a namespace here");
        return;
    }
    examined.only("link-rate", "warning", "ethtool -s fab0 autoneg on");
}

#[test]
fn nobody_listens() {
    let Some(mut ward) = Ward::open(&usual()) else { return };
    let (mut child, _) = ward.listener.take().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let examined = ward.examine("", "");
    examined.only("peer", "error", "apus doctor --listen");
    let found = examined.row("peer")["found"].as_str().unwrap();
    assert!(found.ends_with("nobody listens at that port"), "{found}");
}

#[test]
fn a_service_tells_of_its_way_back() {
    let Some(mut ward) = Ward::open(&usual()) else { return };
    let address = format!("{}:0", ward.fabric.address(1));
    ward.start(&["serve", &address]);
    let examined = ward.examine("", "");
    assert_eq!(examined.row("peer")["severity"], "note", "{:#}", examined.report);
    assert_eq!(examined.row("path-priorities")["severity"], "ok", "{:#}", examined.report);
    if strip(&ward, "ip daddr 10.77.0.1") {
        ward.examine("", "").among("path-priorities", "warning", "num_priorities = 1");
    }
}

/// A process that never rests. It ends when a test does.
struct Busy(Child);

impl Drop for Busy {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn another_program_uses_the_core() {
    // On one core, however many there are, and however few of them this container may keep busy.
    let on_one_core = || {
        if let Some(core) = Cores::choose().server {
            pin(core).unwrap();
        }
        let busy = Busy(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
        let output = apus().args(["doctor", "--json"]).stdin(Stdio::null()).output().unwrap();
        drop(busy);
        output
    };
    let output = std::thread::scope(|scope| scope.spawn(on_one_core).join()).unwrap();
    let examined = Examined::of(&output);
    examined.among("other-load", "warning", "renice");
    let what = examined.row("other-load")["measured"][0]["what"].as_str().unwrap();
    assert!(what.contains("(process "), "{what}");
}

#[test]
fn few_files_may_be_open() {
    let mut command = Command::new("sh");
    let script = format!("ulimit -n 64; exec {} doctor --json", env!("CARGO_BIN_EXE_apus"));
    let output = command.args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
    Examined::of(&output).among("descriptors", "warning", "1024");
}

#[test]
fn people_read_the_same_and_get_the_same_status() {
    let root = Root::clean();
    root.plant("proc/sys/net/core/rmem_max", "16384");
    let output =
        apus().args(["doctor", "--root"]).arg(root.path()).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    for expected in [
        "error   receive-buffer",
        "error: receive-buffer: net.core.rmem_max is 16384 bytes",
        "    sysctl -w net.core.rmem_max=4194304\n",
        "1 error, ",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn a_listener_answers_until_it_is_told_to_end() {
    let mut command = apus();
    command.args(["doctor", "--listen", "127.0.0.1:0", "--json"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let listening: Value = serde_json::from_str(&line).unwrap();
    let root = Root::clean();
    let address = listening["listening"].as_str().unwrap();
    let output =
        apus().args(["doctor", address, "--json", "--root"]).arg(root.path()).output().unwrap();
    let examined = Examined::of(&output);
    assert_eq!(examined.row("path-priorities")["severity"], "ok", "{:#}", examined.report);
    assert_eq!(examined.row("path-loss")["severity"], "ok", "{:#}", examined.report);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let end: Value = serde_json::from_str(&rest).unwrap();
    assert!(end["answered"].as_u64().unwrap() > 20, "{rest}");
}
