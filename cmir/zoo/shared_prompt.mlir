// Shared prompt: reward models, DPO, best-of-n. A pack is one prompt followed by its answers; each answer sees the prompt and itself, causally,
// and no other answer. Several packs may stand in one row of tokens. Per row: `pack[i]` is the first token of its pack, `prompt[i]` the end of
// that pack's prompt, `segment[i]` the first token of its own segment (the prompt or one answer).
maskspec.spec @shared_prompt(
    %pack: !maskspec.table<row>, %prompt: !maskspec.table<row>, %segment: !maskspec.table<row>) {
  maskspec.assume rows == cols
  maskspec.assume 0 <= pack[i] and pack[i] <= segment[i] and segment[i] <= i
  maskspec.assume pack[i] <= prompt[i] and prompt[i] == prompt[pack[i]]
  maskspec.nondecreasing pack
  maskspec.nondecreasing prompt
  maskspec.nondecreasing segment

  maskspec.region @all rows [0, rows) (%i, %j) {
    %pack_i = maskspec.lookup %pack[%i]
    %prompt_i = maskspec.lookup %prompt[%i]
    %segment_i = maskspec.lookup %segment[%i]
    %in_pack = arith.cmpi sle, %pack_i, %j : index
    %before_answers = arith.cmpi slt, %j, %prompt_i : index
    %in_prompt = arith.andi %in_pack, %before_answers : i1
    %in_segment = arith.cmpi sle, %segment_i, %j : index
    %either = arith.ori %in_prompt, %in_segment : i1
    %causal = arith.cmpi sle, %j, %i : index
    %visible = arith.andi %causal, %either : i1
    maskspec.visible %visible
  }
}
