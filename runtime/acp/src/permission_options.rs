//! The options that an agent offers when it asks for a permission by ACP. Agents name and order them as they like; the kind
//! is what counts.

use agent_client_protocol_schema::v1::PermissionOptionKind;
use serde::Deserialize;
use serde_json::Value;

/// What an option means; none if ACP does not know it.
pub fn kind(option: &Value) -> Option<PermissionOptionKind> {
    PermissionOptionKind::deserialize(&option["kind"]).ok()
}

/// The option that an answer has chosen from those that were offered.
pub fn chosen<'a>(options: &'a [Value], outcome: &Value) -> Option<&'a Value> {
    let id = outcome.get("optionId").filter(|id| !id.is_null())?;
    options.iter().find(|option| option["optionId"] == *id)
}

/// The first option of the first of these kinds that is offered.
pub fn first_of(options: &[Value], kinds: [PermissionOptionKind; 2]) -> Option<&Value> {
    kinds.into_iter().find_map(|wanted| options.iter().find(|it| kind(it) == Some(wanted)))
}
