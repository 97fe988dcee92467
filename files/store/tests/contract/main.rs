//! The contract of every store: STORE-1 to STORE-6 and the behaviour of Linux, as functions over a
//! [`World`].
//!
//! A store joins with one line at the end of this file: `contract!(name, TypeOfItsWorld);`.

mod confinement;
mod differential;
mod directory;
mod durability;
mod export;
mod files;
mod memory;
mod model;
mod names;
mod numbers;
mod orphans;
mod renames;
mod versions;
mod world;

/// Runs all functions of the contract for one world.
macro_rules! contract {
    ($store:ident, $world:ty) => {
        mod $store {
            contract!(@ $world:
                confinement::links_are_not_followed,
                differential::random_records_do_what_posix_says,
                differential::crashes_leave_a_prefix,
                durability::committed_batches_survive,
                durability::appended_batches_survive_as_a_prefix,
                durability::batches_are_applied_once,
                durability::lost_batches_can_be_sent_again,
                durability::clients_are_forgotten,
                durability::a_failed_record_ends_its_batch,
                files::bytes_are_read_as_written,
                files::sizes_change,
                files::ranges_are_zeroed,
                files::bytes_are_copied,
                files::holes_are_found,
                files::attributes_are_set,
                files::only_files_have_bytes,
                files::extended_attributes_are_kept,
                names::every_kind_of_node_is_created,
                names::taken_names_are_refused,
                names::names_are_removed,
                names::links_are_counted,
                names::listings_go_on_behind_a_name,
                names::changed_nodes_are_reported,
                numbers::reserved_numbers_are_never_reserved_again,
                numbers::a_number_names_one_node,
                numbers::numbers_survive_crashes,
                orphans::orphans_are_kept_until_dropped,
                orphans::orphans_survive_crashes,
                orphans::a_file_without_a_name_can_get_one,
                renames::names_move,
                renames::files_are_replaced,
                renames::names_are_exchanged,
                renames::impossible_renames_are_refused,
                renames::stale_renames_are_refused,
                versions::every_change_changes_the_version,
                versions::reads_keep_the_version,
                versions::lost_changes_leave_no_version_behind,
            );
        }
    };
    (@ $world:ty: $($module:ident :: $case:ident),+ $(,)?) => {
        $(
            #[test]
            fn $case() {
                crate::$module::$case::<$world>();
            }
        )+
    };
}

contract!(memory_store, crate::memory::MemoryWorld);
contract!(directory_store, crate::directory::DirectoryWorld);
