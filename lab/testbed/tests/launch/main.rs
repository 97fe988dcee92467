//! Scenario: other programs start the agents of a cluster: ssh on several hosts, mpirun, or a
//! launcher that sets the ranks in the environment. The agents find each other. If an agent cannot
//! take part or dies, the error names it and the reason, and no process remains.
//!
//! Tests are skipped with a message if sshd, mpirun or the privilege to create a network namespace
//! is missing.

mod cluster;
mod mpi;
mod ranks;
mod ssh;

use std::env;
use std::process::{Command, ExitCode};

use apus_testbed::process::{AGENT, agent_main};

/// Argument that makes this program a rank of a job.
const RANK: &str = "__rank";
/// Argument that runs one test in a separate network namespace.
const INSIDE: &str = "__inside";

/// A test and its name.
macro_rules! tests {
    ($($group:ident::$name:ident),* $(,)?) => {
        [$((concat!(stringify!($group), "::", stringify!($name)), $group::$name as fn())),*]
    };
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let first = arguments.first().map(String::as_str);
    match first {
        Some(AGENT) => return agent_main(cluster::work),
        Some(RANK) => return mpi::rank(),
        // The check of a host requests the version.
        Some("--version") => {
            println!("launch {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let tests = tests![
        cluster::local_nodes_have_a_command_and_an_address_each,
        cluster::threads_serve_as_nodes,
        ranks::find_each_other_twice_with_new_agents,
        ranks::are_not_disturbed_by_unknown_connections,
        ranks::of_another_job_are_refused_with_a_reason,
        ranks::that_are_missing_are_named,
        ranks::whose_agent_dies_are_named,
        ranks::that_die_are_named,
        ranks::end_when_rank_0_does,
        ranks::may_be_one,
    ];
    let namespaced = tests![
        cluster::nodes_in_another_namespace_are_entered,
        mpi::ranks_find_each_other,
        ssh::hosts_run_agents_twice,
        ssh::hosts_that_cannot_take_part_are_named,
        ssh::a_host_whose_agent_dies_is_named,
        ssh::agents_end_with_their_parent,
        ssh::agents_see_the_end_of_their_input,
    ];
    if first == Some(INSIDE) {
        let (_, test) = namespaced.iter().find(|(name, _)| *name == arguments[1]).expect("a test");
        run("ip", &["link", "set", "lo", "up"]);
        test();
        return ExitCode::SUCCESS;
    }
    let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
    let wanted = |name: &str| filter.is_none_or(|part| name.contains(part.as_str()));
    for (name, test) in tests.iter().filter(|(name, _)| wanted(name)) {
        test();
        println!("test {name} ... ok");
    }
    for (name, _) in namespaced.iter().filter(|(name, _)| wanted(name)) {
        match missing(name) {
            Some(missing) => println!("test {name} ... SKIPPED: {missing}"),
            None => {
                let this = env::current_exe().expect("a program knows its file");
                let this = this.to_str().expect("a path that is text");
                run("unshare", &[&namespace()[..], &["--", this, INSIDE, name]].concat());
                println!("test {name} ... ok");
            }
        }
    }
    ExitCode::SUCCESS
}

/// Returns options for namespaces with private ports and system folders for this test.
fn namespace() -> Vec<&'static str> {
    let mut options = vec!["--net", "--mount"];
    if !rustix::process::geteuid().is_root() {
        options.push("--map-root-user");
    }
    options
}

/// Returns why a test cannot run here.
fn missing(name: &str) -> Option<String> {
    let works = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    if !works("unshare", &[&namespace()[..], &["--", "ip", "link", "set", "lo", "up"]].concat()) {
        return Some("no network namespace can be created here".to_owned());
    }
    if name.starts_with("cluster::") {
        return (!works("nsenter", &["--version"])).then(|| "no nsenter here".to_owned());
    }
    if name.starts_with("mpi::") {
        return (!works("mpirun", &["--version"])).then(|| "no mpirun here".to_owned());
    }
    if !rustix::process::geteuid().is_root() {
        return Some("sshd must be started by root".to_owned());
    }
    let there = |path: &str| std::path::Path::new(path).exists();
    (!there(ssh::SSHD) || !works("ssh", &["-V"])).then(|| "no ssh or no sshd here".to_owned())
}

/// Runs a command that must succeed.
fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status();
    let status = status.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(status.success(), "{program} {arguments:?}: {status}");
}
