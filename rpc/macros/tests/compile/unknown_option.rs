#[apus_macros::service(nmae = "shop.Store")]
trait Store {
    async fn get(&self, key: String) -> String;
}

fn main() {}
