// Moves the bars with the slider. The numbers are those that the server computed: nothing is computed here.
const slider = document.querySelector(".slider");
if (slider) {
  const steps = JSON.parse(slider.dataset.steps);
  const place = document.querySelector("#place");
  const shown = document.querySelector("#epsilon");
  const texts = [...document.querySelectorAll("[data-bar]")];
  const show = () => {
    const step = steps[Number(place.value)];
    shown.textContent = step.epsilon;
    place.setAttribute("aria-valuetext", `ε = ${step.epsilon}`);
    for (const text of texts) {
      const [share, written] = step.bars[Number(text.dataset.bar)];
      const drawn = text.closest("tr").querySelector("svg");
      text.textContent = written;
      drawn.setAttribute("aria-label", written);
      drawn.querySelector(".after").setAttribute("width", String(100 * share));
    }
  };
  place.addEventListener("input", show);
  // Attacks are computed by the server: another page is asked for when the slider is let go.
  if (slider.dataset.sends) place.addEventListener("change", () => slider.submit());
  else slider.querySelector(".without").hidden = true;
  show();
}
