#[apus_macros::service]
trait Store {
    async fn get(key: String) -> String;
}

fn main() {}
