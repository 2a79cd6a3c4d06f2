package ticket

// Sizes and counts, each a refusal and never a truncation.
const (
	MaxIDBytes         = 256     // of scope, session, run and operation ids
	MaxTicketIDBytes   = 128     // of a ticket id
	MaxKeyBytes        = 204     // of a dispatch key: every report's id has then room for a run id that is a UUID
	MaxContractBytes   = 65_536  // of a contract's canonical JSON
	MaxDispatchBytes   = 262_144 // of a dispatch spec's canonical JSON
	MaxChildValueBytes = 4_096   // of a ticket document in a child's metadata
	MaxArtifactBytes   = 1 << 20 // of one artifact; at least 1 byte
	MaxRequestBytes    = 4 << 20 // of a request's canonical JSON
	MaxDependencies    = 256     // of one ticket
	MaxBatch           = 1_000   // tickets made by one command
	MaxArtifacts       = 64      // of one submission
	MaxEvidence        = 64      // of one submission
	MaxEffects         = 256     // of one assignment
	MaxTextBytes       = 4_096   // of a reason, an effect or a piece of evidence
	MaxAttempts        = 100     // of a contract's retry
)

// maxNameBytes is for a scope's and a ticket's id together, so that 9,999 attempts
// have a key.
const maxNameBytes = MaxKeyBytes - len("/@9999/9999")
