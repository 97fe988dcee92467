//! Permissions of the handlers: the groups of state that each function of `rx`, `expiry` and
//! `lifecycle` may change.
//!
//! The state of an endpoint has three owners: `Protocol` (RPCs, peers, timers), `Inbound` (grants,
//! budgets, admission) and `Output` (packets, events, counters). A function may change a group only
//! if its signature takes the group, or a part of it, by `&mut`. The table repeats the signatures,
//! so that a wider one is a decision that a reviewer sees.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Functions by file, and by the groups that they may change: `P`rotocol, `I`nbound, `O`utput.
const PERMITTED: &[(&str, &str, &str)] = &[
    ("expiry/check", "PIO", "check check_receiver check_client ask_in_turn give_up check_response"),
    ("expiry/check", "P", "is_response_given_up"),
    ("expiry/idle_acks", "PO", "send_idle_acks"),
    ("expiry/mod", "PIO", "run check_after_overflow reap"),
    ("expiry/progress", "PIO", "check_progress"),
    ("expiry/suspect", "PIO", "fail_unreached"),
    ("expiry/suspect", "PO", "ask check_suspects check"),
    ("expiry/suspect", "P", "note_closed note_returned"),
    (
        "lifecycle/ending",
        "PIO",
        "complete_client fail_client fail_client_with fail_and_disown refuse_live end_server remove_client remove",
    ),
    ("lifecycle/ending", "O", "note_answered"),
    ("lifecycle/mod", "PO", "peer_for_client peer_for"),
    ("lifecycle/stalled", "PIO", "end_stalled_response"),
    ("rx/acknowledge", "PIO", "acknowledge"),
    ("rx/admit", "PIO", "admit admit_confirmed room_for"),
    (
        "rx/admit",
        "PO",
        "pass_challenge pass_as_host refuse_without_room refuse_unwanted create_server refuse refuse_for",
    ),
    ("rx/assemble", "PIO", "add_data finish_if_complete complete_request"),
    ("rx/assemble", "IO", "deliver_request"),
    ("rx/assemble", "I", "in_one_packet"),
    ("rx/assemble", "O", "note_gap"),
    ("rx/challenge", "PO", "enter end_life"),
    ("rx/establish", "PIO", "establish_session"),
    ("rx/host_life", "PIO", "end_earlier"),
    ("rx/host_life", "PO", "note_host_life"),
    ("rx/lookup", "P", "note_variant note_known"),
    ("rx/mod", "PIO", "receive"),
    ("rx/mod", "O", "count_needless_resend drop_packet"),
    ("rx/on_ack", "PIO", "on_ack"),
    ("rx/on_busy", "P", "on_busy"),
    ("rx/on_cutoffs", "P", "on_cutoffs"),
    ("rx/on_data", "PIO", "on_data on_request"),
    ("rx/on_data", "PO", "announce_cutoffs"),
    ("rx/on_freeze", "O", "on_freeze"),
    ("rx/on_grant", "PO", "on_grant"),
    ("rx/on_need_ack", "PIO", "on_need_ack on_offer peer_restarted"),
    ("rx/on_need_ack", "PO", "begin_session start_over repeat answer_with_acks"),
    ("rx/on_need_ack", "P", "bind sample_round_trip"),
    ("rx/on_resend", "PO", "on_resend resend_range answer_unknown"),
    ("rx/on_response", "PIO", "on_response begin_response"),
    ("rx/on_rpc_unknown", "PIO", "on_rpc_unknown refused"),
    ("rx/on_rpc_unknown", "PO", "restart"),
    ("rx/send_again", "PO", "send_again"),
    ("rx/unproven", "P", "count_answer"),
];

/// Types of the groups and of their parts.
const GROUPS: &[(char, &[&str])] = &[
    ('P', &["Protocol", "Tables", "Rpcs", "Rpc", "Peers", "Peer", "Timers"]),
    ('I', &["Inbound", "Granter", "Budget", "ReceiveBudget", "OwnCutoffs", "Sampler"]),
    ('O', &["Output", "Outbound", "SendQueue", "Observation", "Metrics", "Notes"]),
];

#[test]
fn functions_change_the_groups_that_the_table_permits() {
    let mut wrong = Vec::new();
    let permitted: BTreeMap<(&str, &str), &str> = PERMITTED
        .iter()
        .flat_map(|(file, groups, names)| names.split(' ').map(|name| ((*file, name), *groups)))
        .collect();
    let mut seen = BTreeSet::new();
    let sources = sources();
    for (file, text) in &sources {
        for (name, signature) in signatures(text) {
            let found = match groups_of(&signature) {
                Ok(found) => found,
                Err(unknown) => {
                    wrong
                        .push(format!("{file}: {name} takes &mut {unknown}, which is in no group"));
                    continue;
                }
            };
            let expected = permitted.get(&(file.as_str(), name)).copied().unwrap_or("");
            if found != expected {
                wrong.push(format!("{file}: {name} takes '{found}', the table has '{expected}'"));
            }
            seen.insert((file.as_str(), name));
        }
    }
    let gone = permitted.keys().filter(|key| !seen.contains(*key));
    wrong.extend(gone.map(|(file, name)| format!("{file}: {name} does not exist")));
    assert!(seen.len() > 70, "functions are not found: {}", seen.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The files of the three folders, by path, without comments and unit tests.
fn sources() -> Vec<(String, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for folder in ["expiry", "lifecycle", "rx"] {
        for entry in fs::read_dir(src.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let code: Vec<&str> =
                code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            found.push((format!("{folder}/{name}"), code.join("\n")));
        }
    }
    found
}

/// The functions of a file, each with its signature.
fn signatures(text: &str) -> Vec<(&str, String)> {
    let functions = text.match_indices("fn ").filter(|(at, _)| {
        text[..*at].ends_with([' ', '\n']) || *at == 0 // not the end of another word
    });
    functions
        .map(|(at, _)| {
            let rest = &text[at + "fn ".len()..];
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            (name, rest.split('{').next().unwrap_or_default().to_owned())
        })
        .collect()
}

/// The groups that a signature takes by `&mut`.
///
/// # Errors
///
/// A type that belongs to no group.
fn groups_of(signature: &str) -> Result<String, &str> {
    let mut found = BTreeSet::new();
    for taken in signature.split("&mut ").skip(1) {
        let name = taken.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let place = GROUPS.iter().position(|(_, types)| types.contains(&name)).ok_or(name)?;
        found.insert(place);
    }
    Ok(found.into_iter().map(|place| GROUPS[place].0).collect())
}
